#!/usr/bin/env node
/** The `gguf-native` program: runs its arguments on the streams of this process. */
import { writeFileSync } from "node:fs";
import { Socket } from "node:net";
import { endProcess } from "../backend/addon";
import { Terminal } from "./output/terminal";
import { run } from "./run";

const STDOUT = 1;

/** An ordinary end takes milliseconds. */
const LONGEST_END_MS = 3000;

const terminal = new Terminal({
  stdout: {
    isTTY: process.stdout.isTTY,
    get columns() {
      return process.stdout.columns;
    },
    hasColors: (env) => process.stdout.hasColors(env),
    write(text) {
      // Where a disk has room for a part of the text only, Node's stream for files loses the rest without an error.
      if (process.stdout instanceof Socket) process.stdout.write(text);
      else writeFileSync(STDOUT, text);
    },
    drained() {
      if (!process.stdout.writableNeedDrain) return undefined;
      return new Promise((resolve) => process.stdout.once("drain", resolve));
    },
  },
  stderr: process.stderr,
  env: process.env,
});

process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") {
    // A reader that stops reading, such as head, is no error. A command that has ended keeps its exit code.
    setImmediate(() => end());
  } else {
    terminal.complain(error.message);
    process.exitCode = 1;
    end();
  }
});
// There is nobody left to tell.
process.stderr.on("error", () => undefined);

/**
 * Ends the process now. Node waits for the threads that compile, and one of them may be waiting for this thread
 * (nodejs/node 54918): then the addon ends the process a little later.
 */
function end(): never {
  endProcess(LONGEST_END_MS, Number(process.exitCode ?? 0));
  process.exit();
}

void run(process.argv.slice(2), terminal).then(async (code) => {
  process.exitCode = code;
  for (const stream of [process.stdout, process.stderr]) {
    if (stream.writableLength > 0) await new Promise((written) => stream.write("", written));
  }
  end();
});
