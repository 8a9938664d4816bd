/** The command line. */
import { parseArgs } from "node:util";
import type { GgmlType } from "gguf-native";
import { WEIGHT_TYPES } from "./weights";

export const SUITES = [
  ...["native-vs-ts", "peers", "machine", "calls", "open", "scaling", "products", "latency", "network", "load"],
  ...["llama", "embeddings", "stats", "quantize", "wasm"],
] as const;
export type Suite = (typeof SUITES)[number];

export interface Options {
  suites: ReadonlySet<string>;
  /** The types that were named; undefined: each suite uses its own default. */
  types: readonly GgmlType[] | undefined;
  quick: boolean;
  /** Where to write everything as JSON. */
  json: string | undefined;
  /** JSON of an earlier run: nothing is measured. */
  from: string | undefined;
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
  --from FILE     take what --json wrote, and measure nothing
  --svg FOLDER    write charts to FOLDER
  --check         compare with bench/floors.json; exit code 1 if a ratio is
                  below its floor
  --help          show this text`;

/** The options of the command line, or the problem with them. */
export function parseOptions(args: readonly string[]): Options | "help" | { problem: string } {
  try {
    const text = { type: "string" } as const;
    const flag = { type: "boolean", default: false } as const;
    const { values } = parseArgs({
      args: [...args],
      options: {
        ...{ suite: text, types: text, json: text, from: text, svg: text },
        ...{ quick: flag, check: flag, help: { ...flag, short: "h" } },
      },
    });
    if (values.help) return "help";
    const { quick, json, from, svg, check } = values;
    return {
      ...{ quick, json, from, svg, check },
      suites: new Set(values.suite === undefined ? SUITES : values.suite.split(",").map(checkSuite)),
      types: values.types?.split(",").map(checkType),
    };
  } catch (error) {
    return { problem: (error as Error).message };
  }
}

function checkSuite(name: string): Suite {
  const suite = SUITES.find((known) => known === name);
  if (suite === undefined) throw new Error(`unknown suite '${name}': the suites are ${SUITES.join(", ")}`);
  return suite as Suite;
}

function checkType(name: string): GgmlType {
  if (!WEIGHT_TYPES.some((type) => type === name)) {
    throw new Error(`cannot make weights of type '${name}': the types are ${WEIGHT_TYPES.join(", ")}`);
  }
  return name as GgmlType;
}
