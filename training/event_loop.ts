/**
 * Resolves in a later task, so that signals, timers and the page run between two steps. tf.nextFrame would wait for an
 * animation frame, of which a hidden page gets none.
 */
export function nextTask(): Promise<void> {
  return new Promise((resolve) => {
    if (typeof setImmediate === 'function') {
      setImmediate(resolve);
      return;
    }
    const {port1, port2} = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(null);
  });
}
