/** How `console.log` shows an object: Node.js calls a method of this name, browsers do not. */

/** `util.inspect.custom`, under the name by which every runtime finds it. */
export const inspectCustom: unique symbol = Symbol.for("nodejs.util.inspect.custom");

/** `util.inspect`, as such a method gets it. */
export type Inspect = (value: unknown, options: object) => string;
