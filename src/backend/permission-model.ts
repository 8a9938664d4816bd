/**
 * The permission model of Node.js (`node --permission`). Node checks what JavaScript does with files, but cannot check
 * what an addon does. So paths are checked here before the addon gets them.
 */
import { resolve } from "node:path";
import { GgufError } from "../base/errors";

interface Permission {
  has(scope: string, reference: string): boolean;
}

/** Undefined where the model is not in use. */
function permission(): Permission | undefined {
  return (process as { permission?: Permission }).permission;
}

/** Whether the model is in use. Nothing can be written then: Node has no calls for modes, and from version 26 on none to flush. */
export function isRestricted(): boolean {
  return permission() !== undefined;
}

/** @throws GgufError ERR_GGUF_OPEN where the permission model does not allow to read a file */
export function checkReadable(path: string): void {
  if (permission()?.has("fs.read", resolve(path)) ?? true) return;
  const resource = resolve(path);
  const denied = { code: "ERR_ACCESS_DENIED", permission: "FileSystemRead", resource };
  const cause = Object.assign(new Error("Access to this API has been restricted"), denied);
  const detail = `cannot open the file: the permission model of Node.js forbids to read it: start it with --allow-fs-read=${resource}, too`;
  throw new GgufError("ERR_GGUF_OPEN", detail, { path, cause });
}

/** @throws GgufError ERR_GGUF_WRITE where the permission model is in use */
export function checkWritable(path: string): void {
  if (!isRestricted()) return;
  const detail =
    "cannot be written: under its permission model, Node.js has no calls to set modes and to flush files: start it without --permission (GgufWriter.chunks() gives the bytes of a file)";
  throw new GgufError("ERR_GGUF_WRITE", detail, { path });
}
