/**
 * The demo page and a browser, in a process of their own, driven over Node's IPC by test/helpers/browser.ts: a request
 * {id, call, args} runs the visit of that name (visits.mjs). jest can import neither vite nor the packaged Chromium.
 */
import {launch} from '../browser/launch.mjs';
import {buildDemo, serveDemo} from './site.mjs';
import {isAccessible, lacksWebGPU, opens, stops, trains, writes} from './visits.mjs';

const visits = {writes, opens, stops, lacksWebGPU, trains, isAccessible};

const [server, {browser, close}] = await Promise.all([buildDemo().then(serveDemo), launch()]);

process.on('message', async ({id, call, args}) => {
  try {
    process.send({id, result: (await visits[call]({browser, url: server.url}, ...(args ?? []))) ?? null});
  } catch (error) {
    process.send({id, error: String(error.stack ?? error)});
  }
});

process.on('disconnect', async () => {
  await server.close();
  await close();
  process.exit(0);
});

process.send({ready: true});
