/**
 * Writes a conversation with a chat template, which is a program in a file that may be hostile. What it may do is counted:
 * its values have so many characters and elements together, and no more. Time is limited by who runs this in a worker.
 */
import { Environment, Interpreter, parse, tokenize } from "@huggingface/jinja";
import type { TemplateTask } from "../lib/chat-template";

type Value = ReturnType<Interpreter["evaluate"]>;
type Statement = Parameters<Interpreter["evaluate"]>[0];

/** The most characters and elements that all values of a program have together. */
const MOST_WORK = 1 << 22;

/** Counts what each expression gives: a value that would be too large is not made of smaller ones. */
class LimitedInterpreter extends Interpreter {
  #work = 0;

  override evaluate(statement: Statement, environment: Environment): Value {
    const result = super.evaluate(statement, environment);
    const { value } = result as { value: unknown };
    this.#work += 1 + (typeof value === "string" || Array.isArray(value) ? value.length : 0);
    if (this.#work > MOST_WORK) throw new Error("the template makes too much of a short conversation");
    return result;
  }
}

/** The text of a conversation. @throws Error that of the template, or for one that is no template */
export function renderTemplate({ source, variables, now }: TemplateTask): string {
  const environment = new Environment();
  const functions = {
    raise_exception: raise,
    range,
    strftime_now: (format: string) => timeText(format, now),
  };
  for (const [name, value] of Object.entries({ ...CONSTANTS, ...functions, ...variables })) {
    environment.set(name, value);
  }
  // As transformers reads templates.
  const program = parse(tokenize(source, { lstrip_blocks: true, trim_blocks: true }));
  return String(new LimitedInterpreter(environment).run(program).value);
}

const CONSTANTS = { true: true, false: false, none: null, True: true, False: false, None: null };

function raise(message: unknown): never {
  throw new Error(String(message));
}

/** Numbers as those of Python's function. */
function range(first: number, second?: number, step = 1): number[] {
  const [start, stop] = second === undefined ? [0, first] : [first, second];
  const length = Math.max(0, Math.ceil((stop - start) / step));
  if (!(length <= MOST_WORK)) throw new Error(`range(${start}, ${stop}, ${step}) is too long`);
  return Array.from({ length }, (_, i) => start + i * step);
}

/** A time in UTC, by the letters of `strftime` that templates use. */
function timeText(format: string, now: number): string {
  const time = new Date(now);
  const name = (options: Intl.DateTimeFormatOptions): string =>
    time.toLocaleString("en-US", { timeZone: "UTC", ...options });
  const digits = (number: number, count = 2): string => String(number).padStart(count, "0");
  const parts: Record<string, () => string> = {
    Y: () => digits(time.getUTCFullYear(), 4),
    m: () => digits(time.getUTCMonth() + 1),
    d: () => digits(time.getUTCDate()),
    B: () => name({ month: "long" }),
    b: () => name({ month: "short" }),
    A: () => name({ weekday: "long" }),
    a: () => name({ weekday: "short" }),
    H: () => digits(time.getUTCHours()),
    M: () => digits(time.getUTCMinutes()),
    S: () => digits(time.getUTCSeconds()),
    "%": () => "%",
  };
  return format.replace(/%([A-Za-z%])/g, (all, letter: string) => parts[letter]?.() ?? all);
}
