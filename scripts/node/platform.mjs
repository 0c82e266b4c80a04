/** Where tfjs-node can run. */

/** Why tfjs-node cannot be set up by this script, or null. */
export function whyNotHere({platform, arch, version} = process) {
  const major = Number(version.slice(1).split('.')[0]);
  if (major >= 23) {
    return `tfjs-node 4.22 does not run on Node 23 and later (this is ${version}); use Node 20 or 22, or the wasm backend.`;
  }
  if (platform !== 'linux' || arch !== 'x64') {
    return `only Linux on x64 is set up by this script (this is ${platform} on ${arch}); install @tensorflow/tfjs-node the ordinary way, or use the wasm backend.`;
  }
  return null;
}
