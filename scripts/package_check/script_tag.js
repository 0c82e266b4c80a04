/** The same through script tags: tfjs's global is `tf`, ours is `tfla`. `check` is put beside them. */
globalThis.done = globalThis.check(globalThis.tf, globalThis.tf, globalThis.tfla);
