/** Sums, scales and copies. */
import { put } from "./lanes";

/** Adds `y` to each of `count` vectors of `width` numbers. */
export function add(x: usize, count: i32, width: i32, y: usize): void {
  for (let i = 0; i < count; i++) {
    let at: usize = 0;
    for (let left = width; left > 0; left -= 4) {
      put(x + at, f32x4.add(v128.load(x + at), v128.load(y + at)), left);
      at += 16;
    }
    x += 4 * width;
  }
}

/** Multiplies `length` numbers with `factor`, in place. */
export function scale(x: usize, length: i32, factor: f32): void {
  copyRuns(x, 0, x, 0, length, 1, factor);
}

/** Copies `count` runs of `length` numbers, times `factor`. The steps are the bytes from one run to the next. */
export function copyRuns(
  from: usize,
  fromStep: usize,
  to: usize,
  toStep: usize,
  length: i32,
  count: i32,
  factor: f32,
): void {
  const factors = f32x4.splat(factor);
  for (let i = 0; i < count; i++) {
    let source = from;
    let target = to;
    for (let left = length; left > 0; left -= 4) {
      put(target, f32x4.mul(v128.load(source), factors), left);
      source += 16;
      target += 16;
    }
    from += fromStep;
    to += toStep;
  }
}

/** Turns `count` rows of `width` numbers into columns. The steps are the bytes from one row to the next. */
export function transpose(
  from: usize,
  fromStep: usize,
  count: i32,
  width: i32,
  to: usize,
  toStep: usize,
): void {
  for (let row = 0; row < count; row += 4) {
    const left = count - row;
    let a = from;
    // Rows beyond the last one are not stored: any will do.
    let b = left > 1 ? a + fromStep : a;
    let c = left > 2 ? b + fromStep : a;
    let d = left > 3 ? c + fromStep : a;
    let target = to + 4 * row;
    for (let i = width; i > 0; i -= 4) {
      const va = v128.load(a);
      const vb = v128.load(b);
      const vc = v128.load(c);
      const vd = v128.load(d);
      const ab = v128.shuffle<i32>(va, vb, 0, 4, 1, 5);
      const cd = v128.shuffle<i32>(vc, vd, 0, 4, 1, 5);
      const lateAb = v128.shuffle<i32>(va, vb, 2, 6, 3, 7);
      const lateCd = v128.shuffle<i32>(vc, vd, 2, 6, 3, 7);
      put(target, v128.shuffle<i64>(ab, cd, 0, 2), left);
      if (i > 1) put(target + toStep, v128.shuffle<i64>(ab, cd, 1, 3), left);
      if (i > 2) put(target + 2 * toStep, v128.shuffle<i64>(lateAb, lateCd, 0, 2), left);
      if (i > 3) put(target + 3 * toStep, v128.shuffle<i64>(lateAb, lateCd, 1, 3), left);
      a += 16;
      b += 16;
      c += 16;
      d += 16;
      target += 4 * toStep;
    }
    from += 4 * fromStep;
  }
}
