/** A headless browser for a suite: functions of a page, called from Node. */
import {type ChildProcess, fork, spawnSync} from 'node:child_process';
import {join} from 'node:path';

const DRIVER = join(__dirname, '..', 'browser', 'driver.mjs');

interface Answer {
  ready?: boolean;
  id?: number;
  result?: unknown;
  error?: string;
}

export class Browser {
  private readonly waiting = new Map<number, {resolve: (x: unknown) => void; reject: (e: Error) => void}>();
  private requests = 0;

  private constructor(private readonly child: ChildProcess) {}

  /** Starts the browser with pages that load `entry` (default: test/browser/page.ts), or what another driver shows. */
  static start(entry?: string, driver = DRIVER): Promise<Browser> {
    const child = fork(driver, entry === undefined ? [] : [entry], {
      execArgv: [],
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    const browser = new Browser(child);
    return new Promise((resolve, reject) => {
      child.on('message', (answer: Answer) => {
        if (answer.ready) {
          resolve(browser);
        } else {
          browser.settle(answer);
        }
      });
      child.on('exit', (code) => {
        const error = new Error(`the browser's driver ended with code ${code}`);
        reject(error);
        for (const {reject: fail} of browser.waiting.values()) fail(error);
      });
    });
  }

  /** window[call](...args) in the page of that name, which is opened when first named. */
  call<T>(page: string, call: string, ...args: unknown[]): Promise<T> {
    return this.send({page, call, args}) as Promise<T>;
  }

  /** Closes a page; the next call opens a new one under the name. */
  async closePage(page: string): Promise<void> {
    await this.send({close: page});
  }

  async close(): Promise<void> {
    const ended = new Promise((resolve) => this.child.once('exit', resolve));
    this.child.disconnect();
    await ended;
  }

  private send(request: object): Promise<unknown> {
    const id = ++this.requests;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, {resolve, reject});
      this.child.send({id, ...request});
    });
  }

  private settle({id, result, error}: Answer): void {
    const waiting = this.waiting.get(id as number);
    this.waiting.delete(id as number);
    if (error === undefined) {
      waiting?.resolve(result);
    } else {
      waiting?.reject(new Error(error));
    }
  }
}

/**
 * describe() for tests in a browser. Where none can be had the tests are skipped with a warning; under CI (the
 * environment variable) nothing is skipped, and the suite fails. `browser()` is for use inside tests.
 */
export function describeInBrowser(
  title: string,
  body: (browser: () => Browser) => void,
  entry?: string,
  driver?: string,
): void {
  const missing = process.env.CI ? null : whyNot();
  if (missing !== null) {
    console.warn(`SKIPPED: ${title}. No browser could be started: ${missing}`);
    describe.skip(title, () => body(() => undefined as never));
    return;
  }
  describe(title, () => {
    let started: Browser | undefined;
    beforeAll(async () => {
      started = await Browser.start(entry, driver);
    }, 120000);
    afterAll(() => started?.close(), 60000);
    body(() => started as Browser);
  });
}

/** Why no browser can be started, or null. */
function whyNot(): string | null {
  const {status, stderr} = spawnSync(process.execPath, [DRIVER, '--check'], {encoding: 'utf8'});
  return status === 0 ? null : stderr.trim();
}
