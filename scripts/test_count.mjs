/**
 * Prints the count of a `jest --json` report as `N passed, N failed, N skipped`; exits with 1 when a test failed or none
 * ran. A test file that could not be run counts as a failed test, because jest's own number leaves it out.
 */
import {readFileSync} from 'node:fs';

let report = {};
try {
  report = JSON.parse(readFileSync(process.argv[2], 'utf8'));
} catch {
  // No report: the runner itself failed.
}
const passed = report.numPassedTests ?? 0;
const skipped = (report.numPendingTests ?? 0) + (report.numTodoTests ?? 0);
let failed = (report.numFailedTests ?? 0) + (report.numRuntimeErrorTestSuites ?? 0);
if (passed === 0 && failed === 0) failed = 1;
console.log(`${passed} passed, ${failed} failed, ${skipped} skipped`);
process.exitCode = failed === 0 ? 0 : 1;
