/**
 * Which build of the native operations this version calls: a hash of their source and the compiler's flags. Written by
 * scripts/node/write_tag.mjs.
 */
export const NATIVE_TAG = '1c7a46782308';
