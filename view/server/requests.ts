/**
 * What may be asked over HTTP. Questions come from a web page, so every part of them is checked: there is nothing in them
 * but what a question needs, and no answer is out of proportion.
 */
import type { CallName, Calls } from "../lib/protocol";

type Check = (value: unknown) => boolean;

const MOST_CELLS = 512;
const MOST_BINS = 4096;
const MOST_ROWS = 1024;
const MOST_ELEMENTS = 1024;
const MOST_TEXT = 4096;
const MOST_AT_ONCE = 64;

const wholeTo =
  (most: number): Check =>
  (value) =>
    Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= most;
const whole = wholeTo(Number.MAX_SAFE_INTEGER);
const cells: Check = (value) => value !== 0 && wholeTo(MOST_CELLS)(value);
const text: Check = (value) => typeof value === "string" && value.length <= MOST_TEXT;
/** The server has a limit for all of a question. */
const typed: Check = (value) => typeof value === "string";
const flag: Check = (value) => typeof value === "boolean";
const optional =
  (check: Check): Check =>
  (value) =>
    value === undefined || check(value);

/** An object with these properties, and no others. */
const having =
  (checks: Readonly<Record<string, Check>>): Check =>
  (value) =>
    typeof value === "object" &&
    value !== null &&
    Object.keys(value).every((key) => Object.hasOwn(checks, key)) &&
    Object.entries(checks).every(([key, check]) => check((value as Record<string, unknown>)[key]));

const address = { model: whole, tensor: whole };
const picture = { width: cells, height: cells };
const pair = { a: having(address), b: having(address) };

/** What the server answers: templates run in the page's worker alone. */
type ServedCall = Exclude<CallName, "render">;

const CHECKS: Readonly<Record<ServedCall, Check>> = {
  open: having({ url: text }),
  close: whole,
  value: having({ model: whole, key: whole, first: whole, count: wholeTo(MOST_ELEMENTS) }),
  vocabulary: whole,
  tokens: having({ model: whole, text: typed, special: flag }),
  template: having({
    ...{ model: whole, key: whole },
    conversation: having({ system: flag, tool: flag, addGenerationPrompt: flag }),
  }),
  memory: having({ model: whole, context: optional(whole) }),
  stats: having({ ...address, bins: wholeTo(MOST_BINS) }),
  picture: having({
    ...{ ...address, ...picture },
    region: optional(having({ row: whole, column: whole, rows: whole, columns: whole })),
  }),
  weight: having({ ...address, row: whole, column: whole }),
  values: having({
    ...address,
    ...{ row: whole, column: whole, rows: wholeTo(MOST_ROWS), columns: wholeTo(MOST_ROWS) },
  }),
  scales: having({ ...address, first: whole, count: wholeTo(MOST_ELEMENTS) }),
  compare: having(pair),
  measure: (all) =>
    Array.isArray(all) && all.length <= MOST_AT_ONCE && all.every((one) => having(pair)(one) || having(address)(one)),
  difference: having({ ...pair, ...picture }),
  differentKeys: having({ a: whole, b: whole }),
};

export interface Question<N extends ServedCall = ServedCall> {
  readonly call: N;
  readonly argument: Parameters<Calls[N]>[0];
}

/** The question that a text asks, as JSON; undefined for anything else. */
export function questionOf(json: string): Question | undefined {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    return undefined;
  }
  const isCall: Check = (call) => typeof call === "string" && Object.hasOwn(CHECKS, call);
  if (!having({ call: isCall, argument: () => true })(value)) return undefined;
  const question = value as Question;
  return CHECKS[question.call](question.argument) ? question : undefined;
}
