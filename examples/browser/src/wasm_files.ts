/**
 * The WebAssembly files of tfjs's wasm backend, fetched once with the page and handed to the workers as blobs: whichever
 * backend is chosen when, nothing is fetched later.
 */
import plain from '@tensorflow/tfjs-backend-wasm/dist/tfjs-backend-wasm.wasm?url';
import simd from '@tensorflow/tfjs-backend-wasm/dist/tfjs-backend-wasm-simd.wasm?url';

async function asBlob(address: string): Promise<string> {
  const response = await fetch(address);
  if (!response.ok) throw new Error(`${response.url}: ${response.status} ${response.statusText}`);
  // Some hosts do not know the type, and browsers compile while they load only what has it.
  const blob = new Blob([await response.arrayBuffer()], {type: 'application/wasm'});
  return URL.createObjectURL(blob);
}

export async function wasmFiles(): Promise<{plain: string; simd: string}> {
  const [first, second] = await Promise.all([asBlob(plain), asBlob(simd)]);
  return {plain: first, simd: second};
}
