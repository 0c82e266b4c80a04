/** CRC-32 (ISO 3309, as in PNG and zip): finds every single flipped bit and every short burst. Not a signature. */
export function crc32(bytes: Uint8Array, start = 0): number {
  let crc = ~start;
  for (let i = 0; i < bytes.length; i++) {
    crc = TABLE[(crc ^ bytes[i]) & 0xff] ^ (crc >>> 8);
  }
  return ~crc >>> 0;
}

const TABLE = Uint32Array.from({length: 256}, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit++) {
    crc = crc & 1 ? 0xedb88320 ^ (crc >>> 1) : crc >>> 1;
  }
  return crc;
});
