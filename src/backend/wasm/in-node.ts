/** Files of this machine, read by position: they are not mapped where there is no addon. */
import { closeSync, constants, existsSync, fstatSync, openSync, readFileSync, readSync, type Stats } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { getSystemErrorMap } from "node:util";
import { SHARE_ENV, Worker } from "node:worker_threads";
import { GgufError } from "../../base/errors";
import { systemError } from "../system-error";
import { wasmAddon } from "./addon";
import { checkExtent, type FileBytes } from "./bytes-of-file";
import { failure } from "./failure";
import { type ParsedHeader, parseHeader } from "./header";
import { compileModule, setModule } from "./module";
import { setThreading, type Threading } from "./threads";

/** Read at first, and the longest header: as the addon has them for files that are not mapped. */
const FIRST_BYTES = 256 << 10;
const LARGEST_HEADER = 1 << 30;

/** The largest content of a file that reports no size, as those of /proc do. */
const LARGEST_UNSIZED = 64 << 20;

/** The most that a call of the system reads. */
const LARGEST_READ = 1 << 30;

/** A FIFO is refused, rather than waited for until somebody writes to it. Windows has no such flag. */
const NO_WAITING = constants.O_NONBLOCK ?? 0;

/** The surface of the addon over the module in a file. */
export function loadModule(file: string): ReturnType<typeof wasmAddon> {
  setModule(() => compileModule(readFileSync(file)));
  setThreading(threadsOfNode(file));
  return wasmAddon((path) => {
    const bytes = new OpenedFile(path);
    return { bytes, header: (partial) => readHeader(bytes, partial) };
  });
}

/** Threads of Node.js that help with the module in a file: as many as the addon would use. */
export function threadsOfNode(file: string): Threading {
  return {
    bytes: () => readFileSync(file),
    processors: () => Math.min(availableParallelism(), Number(process.env.UV_THREADPOOL_SIZE) || Infinity),
    start: (workerData) => {
      // So that tracers find the file. Beside a bundle there is none, and in one that is an ES module no __dirname.
      const program = join(__dirname, "thread-of-node.js");
      if (!existsSync(program)) throw new Error("there is no program for threads");
      const worker = new Worker(program, { workerData, execArgv: [], env: SHARE_ENV });
      const settled = new Promise((resolve) => {
        for (const event of ["message", "error", "exit"]) worker.on(event, resolve);
      });
      worker.unref(); // with its listeners, which keep a process
      return { settled, end: () => void worker.terminate() };
    },
  };
}

class OpenedFile implements FileBytes {
  readonly path: string;
  readonly size: number;
  readonly #descriptor: number;
  /** The content of a file that reports no size. */
  readonly #held: Uint8Array | undefined;
  #users = 1;

  constructor(path: string) {
    this.path = path;
    this.#descriptor = system("cannot open the file", () => openSync(path, constants.O_RDONLY | NO_WAITING));
    try {
      const facts = system("cannot examine the file", () => fstatSync(this.#descriptor));
      checkKind(facts, path);
      this.#held = facts.size === 0 ? this.#readUnsized() : undefined;
      this.size = this.#held?.length ?? facts.size;
    } catch (error) {
      closeSync(this.#descriptor);
      throw error;
    }
  }

  take(begin: number, byteLength: number): Uint8Array {
    if (this.#held !== undefined) return this.#held.slice(begin, begin + byteLength);
    const bytes = new Uint8Array(byteLength);
    const found = this.#read(begin, bytes);
    if (found === byteLength) return bytes;
    const end = Math.min(fstatSync(this.#descriptor).size, begin + found);
    const detail = `the file ends at byte ${end}; it had ${this.size} bytes when it was opened`;
    throw failure("ERR_GGUF_TRUNCATED", detail, end);
  }

  check(begin: bigint, byteLength: bigint): void {
    checkExtent(begin, byteLength, this.size);
  }

  retain(): void {
    this.#users++;
  }

  release(): void {
    if (--this.#users === 0) closeSync(this.#descriptor);
  }

  /** How many bytes there were. */
  #read(begin: number, to: Uint8Array): number {
    for (let done = 0; done < to.length; ) {
      const length = Math.min(to.length - done, LARGEST_READ);
      const found = system(
        "cannot read the file",
        () => readSync(this.#descriptor, to, done, length, begin + done),
        begin + done,
      );
      if (found === 0) return done;
      done += found;
    }
    return to.length;
  }

  #readUnsized(): Uint8Array {
    for (let room = 4096; ; room *= 4) {
      const bytes = new Uint8Array(room);
      const found = this.#read(0, bytes);
      if (found < room) return bytes.subarray(0, found);
      if (room >= LARGEST_UNSIZED) {
        throw refusal(`it reports no size but has more than ${LARGEST_UNSIZED} bytes`, "EFBIG", this.path);
      }
    }
  }
}

function readHeader(bytes: OpenedFile, partial: boolean): ParsedHeader {
  for (let wanted = FIRST_BYTES; ; wanted *= 2) {
    const length = Math.min(wanted, bytes.size);
    const header = parseHeader(bytes.take(0, length), partial, bytes.size);
    if (header !== undefined) return header;
    if (wanted >= LARGEST_HEADER) {
      const detail = `the header is longer than ${LARGEST_HEADER} bytes, too long for a file that is not mapped`;
      throw failure("ERR_GGUF_INVALID", detail, length);
    }
  }
}

/** Calls the system; what it refuses is ERR_GGUF_OPEN. */
function system<T>(what: string, call: () => T, offset?: number): T {
  try {
    return call();
  } catch (cause) {
    const { errno, message } = cause as NodeJS.ErrnoException;
    const [, reason] = getSystemErrorMap().get(errno ?? 0) ?? [];
    throw new GgufError("ERR_GGUF_OPEN", `${what}: ${reason ?? message}`, { cause, offset });
  }
}

function checkKind(facts: Stats, path: string): void {
  if (facts.isFile()) return;
  if (facts.isDirectory()) throw refusal("it is a directory, not a file", "EISDIR", path);
  const kind = facts.isFIFO()
    ? "a FIFO"
    : facts.isSocket()
      ? "a socket"
      : facts.isCharacterDevice()
        ? "a character device"
        : facts.isBlockDevice()
          ? "a block device"
          : "something else";
  throw refusal(`it is ${kind}, not a regular file`, "EINVAL", path);
}

function refusal(detail: string, code: string, path: string): GgufError {
  return new GgufError("ERR_GGUF_OPEN", detail, { cause: systemError(code, path) });
}
