/**
 * Writes ONNX models: the part of protobuf and of onnx.proto that the benchmark graphs need.
 * Field numbers are those of onnx.proto3 (https://github.com/onnx/onnx/blob/main/onnx/onnx.proto3).
 */
const FLOAT = 1;
const INT64 = 7;

function varint(value) {
  const bytes = [];
  let rest = BigInt.asUintN(64, BigInt(value));
  while (rest > 127n) {
    bytes.push(Number(rest & 127n) | 128);
    rest >>= 7n;
  }
  return [...bytes, Number(rest)];
}

const integer = (field, value) => [...varint(field << 3), ...varint(value)];
const bytes = (field, content) => [...varint((field << 3) | 2), ...varint(content.length), ...content];
const text = (field, content) => bytes(field, [...new TextEncoder().encode(content)]);
const float = (field, value) => [
  ...varint((field << 3) | 5),
  ...new Uint8Array(new Float32Array([value]).buffer),
];

/** AttributeProto: text, numbers (whole ones are INT unless the name is in `floats`), or lists of whole numbers. */
function attribute(name, value, floats) {
  const head = text(1, name);
  if (typeof value === 'string') return [...head, ...text(4, value), ...integer(20, 3)];
  if (Array.isArray(value)) return [...head, ...value.flatMap((i) => integer(8, i)), ...integer(20, 7)];
  return floats.includes(name)
    ? [...head, ...float(2, value), ...integer(20, 1)]
    : [...head, ...integer(3, value), ...integer(20, 2)];
}

/** @param node {op, domain, inputs, outputs, attributes, floats: names of attributes that are float} */
function nodeProto({op, domain = '', inputs, outputs, attributes = {}, floats = []}) {
  return [
    ...inputs.flatMap((name) => text(1, name)),
    ...outputs.flatMap((name) => text(2, name)),
    ...text(4, op),
    ...Object.entries(attributes).flatMap(([name, value]) => bytes(5, attribute(name, value, floats))),
    ...(domain === '' ? [] : text(7, domain)),
  ];
}

/** ValueInfoProto of a float tensor; a string in the shape is a free dimension. */
function valueInfo(name, shape) {
  const dims = shape.flatMap((dim) => bytes(1, typeof dim === 'string' ? text(2, dim) : integer(1, dim)));
  return [...text(1, name), ...bytes(2, bytes(1, [...integer(1, FLOAT), ...bytes(2, dims)]))];
}

/** TensorProto of whole numbers (a shape, a position) or of float numbers. */
function constant(name, {shape, int64, float32}) {
  const values = int64 ? new BigInt64Array(int64.map(BigInt)) : new Float32Array(float32);
  return [
    ...shape.flatMap((dim) => integer(1, dim)),
    ...integer(2, int64 ? INT64 : FLOAT),
    ...text(8, name),
    ...bytes(9, [...new Uint8Array(values.buffer)]),
  ];
}

/**
 * @param graph {nodes, inputs: {name: shape}, outputs: {name: shape}, constants: {name: {shape, int64 | float32}}}
 * @returns The bytes of an ONNX model.
 */
export function onnxModel({nodes, inputs, outputs, constants = {}, opset = 21}) {
  const graph = [
    ...nodes.flatMap((node) => bytes(1, nodeProto(node))),
    ...text(2, 'benchmark'),
    ...Object.entries(constants).flatMap(([name, value]) => bytes(5, constant(name, value))),
    ...Object.entries(inputs).flatMap(([name, shape]) => bytes(11, valueInfo(name, shape))),
    ...Object.entries(outputs).flatMap(([name, shape]) => bytes(12, valueInfo(name, shape))),
  ];
  return Uint8Array.from([
    ...integer(1, 10),
    ...bytes(7, graph),
    ...bytes(8, [...text(1, ''), ...integer(2, opset)]),
    ...bytes(8, [...text(1, 'com.microsoft'), ...integer(2, 1)]),
  ]);
}
