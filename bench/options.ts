/** The command line. */
import { parseArgs } from "node:util";
import type { GgmlType } from "gguf-native";
import { WEIGHT_TYPES } from "./weights";

export const SUITES = [
  "native-vs-ts",
  "peers",
  "machine",
  "calls",
  "open",
  "scaling",
  "products",
  "load",
  "llama",
  "embeddings",
  "latency",
  "stats",
  "quantize",
  "wasm",
  "accuracy",
] as const;
export type Suite = (typeof SUITES)[number];

/** The suites that are columns of one table, measured in turns. */
export const KERNEL_SUITES: readonly Suite[] = ["native-vs-ts", "peers", "machine"];

export interface Options {
  suites: ReadonlySet<Suite>;
  /** The types that were named; undefined: each suite uses its own default. */
  types: readonly GgmlType[] | undefined;
  quick: boolean;
  /** Where to write everything as JSON. */
  json: string | undefined;
  /** The folder to write charts to. */
  svg: string | undefined;
  /** Compare with the floors. */
  check: boolean;
}

export const USAGE = `Usage: npm run bench -- [options]
       npm run bench:check -- [options]

  --suite NAMES   suites, separated by commas (default: all):
                  ${SUITES.join(", ")}
  --types NAMES   tensor types, such as Q4_0,Q4_K (default: all that the suite
                  measures)
  --quick         smaller outputs, less time
  --json FILE     write every measurement to FILE
  --svg FOLDER    write charts to FOLDER
  --check         compare with bench/floors.json; exit code 1 if a ratio is
                  below its floor
  --help          show this text`;

/** The options of the command line, or the problem with them. */
export function parseOptions(args: readonly string[]): Options | "help" | { problem: string } {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: {
        suite: { type: "string" },
        types: { type: "string" },
        quick: { type: "boolean", default: false },
        json: { type: "string" },
        svg: { type: "string" },
        check: { type: "boolean", default: false },
        help: { type: "boolean", short: "h", default: false },
      },
    });
    if (values.help) return "help";
    return {
      suites: new Set(values.suite === undefined ? SUITES : values.suite.split(",").map(checkSuite)),
      types: values.types?.split(",").map(checkType),
      quick: values.quick,
      json: values.json,
      svg: values.svg,
      check: values.check,
    };
  } catch (error) {
    return { problem: (error as Error).message };
  }
}

function checkSuite(name: string): Suite {
  const suite = SUITES.find((known) => known === name);
  if (suite === undefined) throw new Error(`unknown suite '${name}': the suites are ${SUITES.join(", ")}`);
  return suite;
}

function checkType(name: string): GgmlType {
  if (!WEIGHT_TYPES.some((type) => type === name)) {
    throw new Error(`cannot make weights of type '${name}': the types are ${WEIGHT_TYPES.join(", ")}`);
  }
  return name as GgmlType;
}
