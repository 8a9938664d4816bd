/**
 * Loading a whole model: all tensors into fresh memory, in every way that a program has, compared with filling as much
 * fresh memory. Each run is a process of its own: memory that was used before is another matter.
 */
import { availableParallelism } from "node:os";
import { inChild } from "../child";
import type { Context } from "../context";
import { summary } from "../measure";
import { QUICK_SHAPE, SHAPE, writeModel } from "../model";
import { digits, progress } from "../table";
import { type LoadRequest, ORDERS, OUTPUTS } from "./load-child";

export async function runLoad({ options, results }: Context): Promise<void> {
  const { path, weights } = writeModel(options.quick ? QUICK_SHAPE : SHAPE);
  const threads = availableParallelism();
  const ways = Object.keys(OUTPUTS).flatMap((outputs) => {
    // Parts of one array are memory like any other: one order of calls shows it.
    const orders = outputs.startsWith("one ") ? ORDERS.slice(0, 1) : ORDERS;
    return orders.map((order) => ({ outputs, order }) as NonNullable<LoadRequest["way"]>);
  });
  const runs = [undefined, ...ways].map((way) => ({ way, seconds: [] as number[] }));
  for (let round = 0; round < (options.quick ? 3 : 9); round++) {
    for (const { way, seconds } of runs) {
      progress(`loading a model, round ${round + 1}`);
      const request: LoadRequest = { path, way, threads };
      const found = await inChild<number | undefined>("load-child", request);
      if (found !== undefined) seconds.push(found);
    }
  }
  progress("");
  const key = { task: "load", bytes: 4 * weights, weights };
  for (const { way, seconds } of runs) {
    if (seconds.length === 0) results.miss("filling fresh memory: see the limits of the machine");
    else if (way === undefined) results.add({ ...key, subject: "-", side: "fill" }, summary(seconds));
    else results.add({ ...key, subject: way.outputs, side: way.order }, summary(seconds));
  }
  const cells = (outputs: string) =>
    ORDERS.map((side) => results.speed("ms", { task: "load", subject: outputs, side }));
  results.table(
    `${digits(weights / 1e6)} M weights in Q4_K and Q6_K to fresh memory, ms`,
    ["results", ...ORDERS, "plain stores"],
    Object.keys(OUTPUTS).map((outputs) => [
      outputs,
      ...cells(outputs),
      results.speed("ms", { task: "load", side: "fill" }),
    ]),
  );
}
