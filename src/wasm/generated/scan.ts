/** Compiled from src/wasm/assembly/scan.ts by `npm run build:wasm`: do not edit. */
export const scanWasm =
  'AGFzbQEAAAABBQFgAAF/AhIBA2VudgZtZW1vcnkCAQGAgAQDAgEABwsBB3ZlcnNpb24AAAoMAQoAQQAoAgAaQQAL';
