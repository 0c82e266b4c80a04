/** The kernels of every backend. */
import './cpu';
import './node';
import './wasm';
import './webgl';
import './webgpu';
