/** Reading test/golden: reference data made from float64 definitions (see test/golden/README.md). */
import {readFileSync} from 'node:fs';
import {join} from 'node:path';

export interface GoldenTensor {
  shape: number[];
  dtype: 'float32' | 'int32';
  data: number[];
}

export interface GoldenCase {
  name: string;
  options: {[key: string]: unknown};
  formula: string;
  inputs: {[name: string]: GoldenTensor};
  outputs: {[name: string]: GoldenTensor};
  cotangents: {[name: string]: GoldenTensor};
  grads: {[name: string]: GoldenTensor};
}

export function goldenCases(file: string): GoldenCase[] {
  return JSON.parse(readFileSync(join(__dirname, '..', 'golden', file), 'utf8')).cases;
}
