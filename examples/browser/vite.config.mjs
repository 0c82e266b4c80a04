/** `npm run demo` serves the page from the sources, `npm run demo:build` writes static files into `dist`. */
import {fileURLToPath} from 'node:url';
import {defineConfig} from 'vite';

const here = fileURLToPath(new URL('.', import.meta.url));
const root = fileURLToPath(new URL('../..', import.meta.url));

/**
 * What the page may do, as a tag, so that it holds on any host: nothing is loaded from elsewhere. tfjs's wasm backend
 * and our kernels compile WebAssembly. The development server writes styles and scripts of its own, so only the built
 * page has it.
 */
const POLICY = [
  "default-src 'none'",
  "script-src 'self' 'wasm-unsafe-eval'",
  "style-src 'self'",
  "worker-src 'self'",
  "connect-src 'self' blob:",
  "img-src 'self' data:",
  "base-uri 'none'",
  "form-action 'none'",
].join('; ');

const contentSecurityPolicy = {
  name: 'content-security-policy',
  apply: 'build',
  transformIndexHtml: () => [
    {
      tag: 'meta',
      attrs: {'http-equiv': 'Content-Security-Policy', content: POLICY},
      injectTo: 'head-prepend',
    },
  ],
};

export default defineConfig({
  root: here,
  base: './', // any folder of any host
  plugins: [contentSecurityPolicy],
  // The built library, as users get it.
  resolve: {alias: {'tfjs-linear-attention': `${root}dist/index.mjs`}},
  server: {fs: {allow: [root]}},
  worker: {format: 'es'},
  build: {
    outDir: `${here}dist`,
    emptyOutDir: true,
    target: 'es2022',
    modulePreload: {polyfill: false},
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 4096, // tfjs with four backends, in the worker
  },
});
