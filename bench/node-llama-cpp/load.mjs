/** Imports a package as this folder sees it. */
export const load = (name) => import(name);
