/** Work: how many values are not finite. */
import type { Work } from "./pieces";

export interface NotFinite {
  nan: number;
  infinite: number;
}

export function finite(): Work<NotFinite> {
  return async (pieces) => {
    const total = { nan: 0, infinite: 0 };
    for await (const piece of pieces) {
      await piece.values((values = new Float32Array()) => {
        if (!allFinite(values)) count(total, values);
      });
    }
    return total;
  };
}

/**
 * Whether all values are finite. A value minus itself is 0, or NaN where it is not finite, and a sum with a NaN in it is
 * NaN. Each addition waits for the one before it, so there are four sums: several times as fast as a test per value.
 */
function allFinite(values: Float32Array): boolean {
  const whole = values.length - (values.length % 4);
  let [a, b, c, d] = [0, 0, 0, 0];
  for (let i = 0; i < whole; i += 4) {
    const [w, x, y, z] = [values[i], values[i + 1], values[i + 2], values[i + 3]] as [
      number,
      number,
      number,
      number,
    ];
    a += w - w;
    b += x - x;
    c += y - y;
    d += z - z;
  }
  for (let i = whole; i < values.length; i++) a += (values[i] as number) - (values[i] as number);
  return a + b + c + d === 0;
}

function count(total: NotFinite, values: Float32Array): void {
  for (const value of values) {
    if (Number.isNaN(value)) total.nan++;
    else if (!Number.isFinite(value)) total.infinite++;
  }
}
