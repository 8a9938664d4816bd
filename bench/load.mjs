/** Imports a package from bench/node_modules, or else from the project's node_modules. */
export const load = (name) => import(name);
