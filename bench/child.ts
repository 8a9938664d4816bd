/** Work in a process of its own: what is measured once in a process, or fixed when it starts. */
import { fork } from "node:child_process";
import { join } from "node:path";

/** Starts `suites/NAME.js`, which answers the request. */
export function inChild<Answer>(name: string, request: unknown, env = process.env): Promise<Answer> {
  const child = fork(join(__dirname, "suites", `${name}.js`), [JSON.stringify(request)], { env });
  return new Promise((resolve, reject) => {
    child.once("message", (answer) => resolve(answer as Answer));
    child.once("error", reject);
    child.once("exit", (code) => reject(new Error(`the child process ended with ${code}`)));
  });
}

/** What such a process does: answers its request, and ends. */
export function answer<Request>(work: (request: Request) => Promise<unknown>): void {
  work(JSON.parse(process.argv[2]!) as Request).then(
    (found) => process.send!(found, () => process.exit()),
    (error) => {
      console.error(error);
      process.exit(1);
    },
  );
}
