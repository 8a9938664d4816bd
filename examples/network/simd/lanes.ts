/**
 * What the other files have in common. Vectors of any length are taken four numbers at a time. The last four may reach
 * beyond the end: that much memory is always there. What they load from there is not stored, and not summed.
 */

/** Stores the first `left` of four numbers; all if there are as many or more. */
export function put(to: usize, v: v128, left: i32): void {
  if (left >= 4) {
    v128.store(to, v);
    return;
  }
  v128.store_lane<f32>(to, v, 0);
  if (left > 1) v128.store_lane<f32>(to, v, 1, 4);
  if (left > 2) v128.store_lane<f32>(to, v, 2, 8);
}

/** All bits in the first `left` of four numbers, none in the others. */
export function lanesBefore(left: i32): v128 {
  return i32x4.lt_s(i32x4(0, 1, 2, 3), i32x4.splat(left));
}

/** The first two of four numbers, as binary64. */
export function low(v: v128): v128 {
  return f64x2.promote_low_f32x4(v);
}

/** The last two of four numbers, as binary64. */
export function high(v: v128): v128 {
  return f64x2.promote_low_f32x4(v128.shuffle<i64>(v, v, 1, 0));
}

/** The sum of two numbers of binary64. */
export function sumOf(v: v128): f64 {
  return f64x2.extract_lane(v, 0) + f64x2.extract_lane(v, 1);
}

/**
 * Four times number `index` of a table. A constant in the code would be made anew for each use, by three instructions of the
 * processor; this takes two.
 */
export function constant(table: usize, index: i32): v128 {
  return v128.load_splat<f32>(table + 4 * index);
}

/** The constants of e^x. */
const EXP = memory.data<f32>([
  88,
  -87,
  <f32>(1 / Math.LN2),
  12583039, // 1.5 * 2^23 + 127: adding it rounds a small number to an integer, and its low bits are this and 127
  0.693359375, // ln(2), in two parts
  -2.1219444e-4,
  0.49999994, // p
  0.1666652,
  0.041668404,
  0.008368899,
  0.0013814222,
  1,
]);

/**
 * e^x, with a relative error of at most 8.2e-8. Numbers below -87 and above 88 count as these, so that the result is a
 * normal number. NaN stays NaN.
 *
 * e^x is 2^n e^r, with n the integer nearest to x / ln(2), and r what is left, at most ln(2) / 2 in size. ln(2) has two
 * parts, the first of which has so few bits that its product with n is exact. e^r is 1 + r + r^2 p(r). The parts of p are
 * computed side by side: a processor takes several such steps at a time.
 */
export function exp(x: v128): v128 {
  const near = f32x4.pmax(f32x4.pmin(x, constant(EXP, 0)), constant(EXP, 1));
  const rounded = f32x4.add(f32x4.mul(near, constant(EXP, 2)), constant(EXP, 3));
  const n = f32x4.sub(rounded, constant(EXP, 3));
  const most = f32x4.sub(near, f32x4.mul(n, constant(EXP, 4)));
  const r = f32x4.sub(most, f32x4.mul(n, constant(EXP, 5)));
  const square = f32x4.mul(r, r);
  const a = f32x4.add(f32x4.mul(constant(EXP, 7), r), constant(EXP, 6));
  const b = f32x4.add(f32x4.mul(constant(EXP, 9), r), constant(EXP, 8));
  const c = f32x4.add(f32x4.mul(constant(EXP, 10), square), b);
  const p = f32x4.add(f32x4.mul(c, square), a);
  const power = f32x4.add(f32x4.add(f32x4.mul(p, square), r), constant(EXP, 11));
  return f32x4.mul(power, i32x4.shl(rounded, 23));
}
