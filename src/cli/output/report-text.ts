/** A report in a terminal. */

import type { Section } from "./inspect-report";
import { again } from "./listed";
import { type Row, wrap } from "./table";
import type { Terminal } from "./terminal";

/** The lines of a report. */
export function* reportLines(report: readonly Section[], terminal: Terminal): Generator<string, void, undefined> {
  for (const [i, { title, facts, table, remarks = [] }] of report.entries()) {
    if (i > 0) yield "";
    yield* wrap(title, terminal.width).map(terminal.heading);
    if (facts !== undefined) yield* terminal.facts(facts);
    if (table !== undefined) yield* tableLines(table, terminal);
    for (const remark of remarks) {
      yield* wrap(remark, terminal.width - 4).map((text, j) => `  ${j === 0 ? "-" : " "} ${text}`);
    }
  }
}

function tableLines({ columns, groups }: NonNullable<Section["table"]>, terminal: Terminal): Iterable<string> {
  const makeRows = function* (): Generator<Row, void, undefined> {
    for (const { title, isForPages, rows } of groups) {
      if (title === undefined || isForPages) yield* rows;
      else {
        yield title;
        for (const [first, ...rest] of rows) yield [`  ${first}`, ...rest];
      }
    }
  };
  return makeRows().next().done ? [] : terminal.table(columns, again(makeRows), true);
}
