/** The command line. */
import { parseArgs } from "node:util";
import type { GgmlType } from "gguf-native";
import { WEIGHT_TYPES } from "./weights";

export const SUITES = ["native-vs-ts", "peers", "machine", "calls", "open", "scaling"] as const;
export type Suite = (typeof SUITES)[number];

/** These are columns of one table, measured in turns. */
export const KERNEL_SUITES: readonly Suite[] = ["native-vs-ts", "peers", "machine"];

export interface Options {
  suites: ReadonlySet<Suite>;
  /** Types asked for; undefined: whatever a suite finds worth measuring. */
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

  --suite NAMES   of ${SUITES.join(", ")};
                  default all, separated by commas
  --types NAMES   tensor types, such as Q4_0,Q4_K; default all
  --quick         smaller outputs, less patience
  --json FILE     write every measurement
  --svg FOLDER    write charts
  --check         compare with bench/floors.json; exit 1 where a ratio is below
  --help          this text`;

/** Options from the command line, or what is wrong with it. */
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
  if (suite === undefined) throw new Error(`no suite is named '${name}': there are ${SUITES.join(", ")}`);
  return suite;
}

function checkType(name: string): GgmlType {
  if (!WEIGHT_TYPES.some((type) => type === name)) {
    throw new Error(`no weights are made of type '${name}': there are ${WEIGHT_TYPES.join(", ")}`);
  }
  return name as GgmlType;
}
