/** Imports a package from the node_modules of this folder. */
export const load = (name) => import(name);
