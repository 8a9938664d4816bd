/** Errors of the system. */
import { getSystemErrorMap } from "node:util";

/** The cause of an ERR_GGUF_OPEN: an error as `node:fs` makes them, with `code` (such as `ENOENT`) and `errno`. */
export function systemError(code: string, path: string | undefined): Error {
  const message = path === undefined ? code : `${code}: open '${path}'`;
  const [errno] = [...getSystemErrorMap()].find(([, [name]]) => name === code) ?? [];
  const known = errno === undefined ? { code } : { errno, code };
  return Object.assign(new Error(message), path === undefined ? known : { ...known, syscall: "open", path });
}
