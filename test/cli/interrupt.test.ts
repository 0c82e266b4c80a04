import {onInterrupt} from '../../cli/interrupt';

describe('Ctrl-C', () => {
  let written: string[];
  let exits: unknown[];
  beforeEach(() => {
    written = [];
    exits = [];
    jest.spyOn(process.stderr, 'write').mockImplementation((text) => written.push(String(text)) > 0);
    jest.spyOn(process, 'exit').mockImplementation((code) => {
      exits.push(code);
      return undefined as never;
    });
  });
  afterEach(() => jest.restoreAllMocks());

  it('asks the work to stop at first, and ends the program at the second time', () => {
    const interrupt = onInterrupt('stopping');
    process.emit('SIGINT');
    expect(interrupt.signal.aborted).toBe(true);
    expect(interrupt.interrupted).toBe(true);
    expect(written.join('')).toContain('stopping');
    expect(exits).toEqual([]);
    process.emit('SIGINT');
    expect(exits).toEqual([130]);
    interrupt.release();
  });

  it('is told apart from a time limit', () => {
    const interrupt = onInterrupt('stopping');
    interrupt.stop();
    expect(interrupt.signal.aborted).toBe(true);
    expect(interrupt.interrupted).toBe(false);
    interrupt.release();
  });

  it('has its usual effect again after release', () => {
    const before = process.listenerCount('SIGINT');
    onInterrupt('stopping').release();
    expect(process.listenerCount('SIGINT')).toBe(before);
  });
});
