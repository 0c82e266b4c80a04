/** The demo page in a browser tab: opened, watched, and used as a visitor would. */

/** Opens the page in a context of its own and waits until it can write. */
export async function openDemo(browser, url, {query = {}, ...context} = {}) {
  const page = await (await browser.newContext(context)).newPage();
  page.setDefaultTimeout(120_000); // a busy machine is slow, not wrong
  const seen = {problems: [], requests: []};
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) seen.problems.push(message.text());
  });
  page.on('pageerror', (error) => seen.problems.push(String(error.stack ?? error)));
  page.on('crash', () => seen.problems.push('the page crashed'));
  page.on('requestfailed', (request) => seen.problems.push(`${request.url()} failed`));
  page.on('request', (request) => seen.requests.push(request.url()));
  await page.goto(`${url}?${new URLSearchParams(query)}`);
  await ready(page);
  return {page, seen, close: () => page.context().close()};
}

export async function ready(page) {
  await page.waitForSelector('body[data-ready]', {timeout: 120_000});
}

/** Presses Write and waits for the end. */
export async function writeText(page, timeout = 120_000) {
  await page.click('#write');
  await written(page, timeout);
}

export async function written(page, timeout = 120_000) {
  await page.waitForFunction(
    () => !/^(Writing|Ready)/.test(document.querySelector('#status').textContent),
    null,
    {
      timeout,
    },
  );
}

/** A side's text with the prompt, and its figures by name. */
export function sideOf(page, side) {
  return page.evaluate((name) => {
    const lines = [...document.querySelectorAll(`#${name}-text > div`)].map(({textContent}) => textContent);
    const figures = [...document.querySelectorAll(`#${name} dl > div`)].map((pair) => [
      pair.querySelector('dt').textContent,
      pair.querySelector('dd').textContent,
    ]);
    const end = document.querySelector(`#${name}-end`).textContent;
    return {text: lines.join('\n'), figures: Object.fromEntries(figures), end};
  }, side);
}

export const textOf = (page, selector) => page.textContent(selector);

/** Serious violations of the accessibility rules that axe-core checks. */
export async function violationsOf(page, axeSource) {
  await page.evaluate(axeSource);
  return page.evaluate(async () => {
    const {violations, passes} = await window.axe.run();
    const list = violations.map(({id, impact, nodes}) => ({
      id,
      impact,
      nodes: nodes.map(({target, failureSummary}) => `${target}: ${failureSummary}`),
    }));
    return {violations: list, passes: passes.length};
  });
}
