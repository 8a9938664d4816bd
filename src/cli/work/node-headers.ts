/** The headers that the addon is compiled with. node-gyp would download Node's; an addon for Node-API needs no more than its. */
import { existsSync, realpathSync } from "node:fs";
import { dirname, join } from "node:path";

/** What node-gyp calls the folder of headers, in its environment. Where somebody has chosen one, it stays. */
const CHOSEN = /^npm_(config|package_config_node_gyp)_(nodedir|disturl|dist_url|tarball)$/i;

/**
 * The folder of headers to give to node-gyp as `nodedir`: where Node.js was installed with its own, that one, otherwise the
 * one in the package. Undefined where the environment names one; and on Windows, where an addon is also linked to node.lib,
 * which comes with neither: node-gyp downloads both.
 * @param folder of the package
 */
export function headersFolder(folder: string): string | undefined {
  if (Object.entries(process.env).some(([name, value]) => value && CHOSEN.test(name))) return undefined;
  const prefix = join(dirname(realpathSync(process.execPath)), "..");
  const isComplete = ["node_api.h", "common.gypi", "config.gypi"].every((name) =>
    existsSync(join(prefix, "include", "node", name)),
  );
  if (isComplete) return prefix;
  return process.platform === "win32" ? undefined : join(folder, "vendor", "node-api-headers");
}
