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

/** 1.5 * 2^23: adding it rounds a small number to an integer, which is then in the low bits. */
const ROUNDER: f32 = 12582912;

/**
 * e^x, with a relative error of at most 8.2e-8. Numbers below -87 and above 88 count as these, so that the result is a
 * normal number. NaN stays NaN.
 *
 * e^x is 2^n e^r, with n the integer nearest to x / ln(2), and r what is left, at most ln(2) / 2 in size. ln(2) has two
 * parts, the first of which has so few bits that its product with n is exact. e^r is 1 + r + r^2 p(r).
 */
export function exp(x: v128): v128 {
  const near = f32x4.pmax(f32x4.pmin(x, f32x4.splat(88)), f32x4.splat(-87));
  const rounded = f32x4.add(f32x4.mul(near, f32x4.splat(<f32>Math.LOG2E)), f32x4.splat(ROUNDER));
  const n = f32x4.sub(rounded, f32x4.splat(ROUNDER));
  const most = f32x4.sub(near, f32x4.mul(n, f32x4.splat(0.693359375)));
  const r = f32x4.add(most, f32x4.mul(n, f32x4.splat(2.1219444e-4)));
  let p = f32x4.splat(0.0013814222);
  p = f32x4.add(f32x4.mul(p, r), f32x4.splat(0.008368899));
  p = f32x4.add(f32x4.mul(p, r), f32x4.splat(0.041668404));
  p = f32x4.add(f32x4.mul(p, r), f32x4.splat(0.1666652));
  p = f32x4.add(f32x4.mul(p, r), f32x4.splat(0.49999994));
  const power = f32x4.add(f32x4.add(f32x4.mul(p, f32x4.mul(r, r)), r), f32x4.splat(1));
  const scale = i32x4.shl(i32x4.add(rounded, i32x4.splat(127)), 23);
  return f32x4.mul(power, scale);
}
