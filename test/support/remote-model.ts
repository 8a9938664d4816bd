/** The sample model as a file on a server. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { type GgufError, openRemote, parse, type RemoteGgufFile, type RemoteOptions } from "gguf-native";
import { type Handler, serve } from "./range-server";
import { sampleModel } from "./sample-model";

export const content = sampleModel();
export const local = parse(content);

export function expectSame(remote: RemoteGgufFile): void {
  assert.equal(remote.version, local.version);
  assert.equal(remote.byteOrder, local.byteOrder);
  assert.equal(remote.byteLength, content.length);
  assert.equal(remote.alignment, local.alignment);
  assert.deepEqual([...remote.metadata], [...local.metadata]);
  assert.deepEqual(
    [...remote.tensors.values()].map((tensor) => tensor.toJSON()),
    [...local.tensors.values()].map((tensor) => tensor.toJSON()),
  );
}

export const hash = (bytes: ArrayBufferView) =>
  createHash("sha256")
    .update(new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength))
    .digest("hex");

export const openAt = async (handler: Handler, options?: RemoteOptions) =>
  openRemote((await serve(handler)).url, options);

/** What every GgufError about a remote file has to be. */
export function isRemoteError(code: string, message: RegExp, status?: number) {
  return (error: GgufError): true => {
    assert.equal(error.name, "GgufError", String(error));
    assert.equal(error.code, code, error.message);
    assert.match(error.message, message);
    assert.match(error.path ?? "", /^http:\/\/127\.0\.0\.1:\d+\//);
    assert.ok(error.message.startsWith(`${error.path}: `));
    if (status !== undefined) assert.equal((error.cause as { status?: number }).status, status);
    return true;
  };
}
