/** Golden g4 through every feature map: features, outputs and gradients. */
import {mapCases, runMapCase} from './conformance/map_case';
import {describeOnBackends} from './helpers/backends';
import {goldenCases} from './helpers/golden';

describeOnBackends('feature maps', () => {
  const cases = mapCases(goldenCases('g4_feature_maps.json'));
  test.each(cases.map((c) => [c.id, c] as const))('%s', async (_, testCase) => {
    expect(await runMapCase(testCase)).toEqual([]);
  });
});
