/** Another process that does something to a file while this one is busy, too busy for its event loop perhaps. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, renameSync, rmSync, writeFileSync } from "node:fs";

/** What to do with the file: statements that use `fs` and `path`. */
export type Deed = string;

export class OtherProcess {
  readonly #child: ChildProcess;
  readonly #trigger: string;

  private constructor(child: ChildProcess, trigger: string) {
    this.#child = child;
    this.#trigger = trigger;
  }

  /** Starts it; it waits for {@link go}. */
  static async start(deed: Deed, path: string): Promise<OtherProcess> {
    const trigger = `${path}.go`;
    rmSync(trigger, { force: true });
    const program = `const fs = require("node:fs");
      const [path, trigger] = process.argv.slice(1);
      const sleep = (ms) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
      const deadline = Date.now() + 60000;
      console.log("ready");
      while (!fs.existsSync(trigger) && Date.now() < deadline) sleep(1);
      sleep(Number(fs.readFileSync(trigger, "utf8")));
      ${deed}
      fs.writeFileSync(trigger + ".done", "");`;
    const child = spawn(process.execPath, ["-e", program, path, trigger], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    await once(child.stdout!, "data");
    return new OtherProcess(child, trigger);
  }

  /** Lets it do its deed, after some milliseconds. Does not wait for it. */
  go(delay = 5): void {
    writeFileSync(`${this.#trigger}.new`, String(delay));
    renameSync(`${this.#trigger}.new`, this.#trigger); // so that it is never there without its content
  }

  /** Whether the deed is done; asks the file system, not the event loop. */
  get done(): boolean {
    return existsSync(`${this.#trigger}.done`);
  }

  async end(): Promise<void> {
    if (this.#child.exitCode === null) await once(this.#child, "exit");
    for (const suffix of ["", ".done"]) rmSync(`${this.#trigger}${suffix}`, { force: true });
  }
}
