/** Where things are. Tests run from build/test/, two folders below the project. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";

export const projectRoot = join(__dirname, "..", "..", "..");
export const fixtures = join(projectRoot, "test", "fixtures");
export const modulePath = join(projectRoot, "dist", "wasm", "kernels.wasm");

/** A folder that is removed when the tests of the calling file are done. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "gguf-native-"));
  after(() => {
    try {
      rmSync(folder, { recursive: true, force: true });
    } catch (error) {
      // Windows does not remove a file that is still mapped; the system cleans its temporary folder itself.
      if (process.platform !== "win32") throw error;
    }
  });
  return folder;
}

/** Writes a file; its path. */
export function writeIn(folder: string, name: string, bytes: Uint8Array): string {
  const path = join(folder, name);
  writeFileSync(path, bytes);
  return path;
}
