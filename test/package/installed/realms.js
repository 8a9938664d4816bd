// What Jest and Vitest run, each in the realm that it makes: scripts/platforms/realms.mjs puts lines before it that define
// `gguf`, `path` and `readFileSync`.
const blocks = new Uint8Array(new Float32Array([1, 2, 3]).buffer);
const local = new Float32Array([1, 2, 3]);

test("results are arrays of this realm", async () => {
  for (const result of [
    gguf.dequantizeSync("F32", blocks),
    await gguf.dequantize("F32", blocks),
    gguf.dequantizeSync("F32", blocks, { out: gguf.allocate(3) }),
  ]) {
    expect(result).toBeInstanceOf(Float32Array);
    expect(result).toEqual(local);
    expect(result).toStrictEqual(local);
  }
  expect(gguf.matmulSync("F32", blocks, 3, local)).toStrictEqual(new Float32Array([14]));
  const bits = gguf.dequantizeSync("F32", blocks, { dtype: "bf16" });
  expect(bits).toStrictEqual(new Uint16Array([0x3f80, 0x4000, 0x4040]));
  const large = gguf.dequantizeSync("F32", new Uint8Array(2 ** 22));
  expect(large).toStrictEqual(new Float32Array(2 ** 20));
});

test("what a file holds is of this realm", async () => {
  for (const file of [gguf.openSync(path), await gguf.open(path), gguf.parse(readFileSync(path))]) {
    const tensor = [...file.tensors.values()].find(({ shape }) => shape.length > 1);
    expect(tensor.shape).toBeInstanceOf(Array);
    expect(tensor.bytes()).toBeInstanceOf(Uint8Array);
    expect(await tensor.read()).toEqual(Uint8Array.from(tensor.bytes()));
    const values = tensor.dequantizeSync();
    expect(values).toStrictEqual(Float32Array.from(values));
    expect(await tensor.dequantize()).toStrictEqual(values);
    expect(tensor.rowsSync([0])).toStrictEqual(values.slice(0, tensor.shape[0]));
    expect(await tensor.rows([0])).toStrictEqual(values.slice(0, tensor.shape[0]));
    const vector = new Float32Array(tensor.shape[0]);
    expect(tensor.matmulSync(vector)).toBeInstanceOf(Float32Array);
    expect(await tensor.matmul(vector)).toBeInstanceOf(Float32Array);
    expect(file.metadata.get("strings")).toStrictEqual(["a", "b"]);
    expect(file.metadata.get("nested")).toStrictEqual([["a"], ["b"]]);
    expect(file.metadata.get("booleans")).toStrictEqual([true, false]);
    expect(file.metadata.get("floats")).toStrictEqual(new Float32Array([1.5, 2]));
    expect(file.metadata.bytes("strings")).toEqual([new Uint8Array([97]), new Uint8Array([98])]);
    file.close();
  }
  expect(gguf.cpu().available).toBeInstanceOf(Array);
});

test("errors are of this realm", async () => {
  let caught;
  try {
    gguf.openSync("/no/such/file.gguf");
  } catch (error) {
    caught = error;
  }
  expect(caught).toBeInstanceOf(gguf.GgufError);
  expect(caught).toBeInstanceOf(Error);
  expect(caught.cause).toBeInstanceOf(Error);
  await expect(gguf.open("/no/such/file.gguf")).rejects.toThrow(gguf.GgufError);
  expect(() => gguf.parse(new Uint8Array(100))).toThrow(gguf.GgufError);
  expect(() => gguf.openSync(5)).toThrow(TypeError);
  await expect(gguf.dequantize("F32", blocks, { start: 7 })).rejects.toThrow(gguf.GgufError);
  const file = gguf.openSync(path);
  const [tensor] = file.tensors.values();
  expect(() => tensor.rowsSync([1e9])).toThrow(gguf.GgufError);
  file.close();
  await expect(tensor.dequantize()).rejects.toThrow(gguf.GgufError);
});
