/** Imports a package as this folder sees it: from bench/node_modules, else from the project's. */
export const load = (name) => import(name);
