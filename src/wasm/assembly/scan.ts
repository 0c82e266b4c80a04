export function version(): i32 {
  return load<i32>(0) & 0;
}
