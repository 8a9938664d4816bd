import "./embedded.js";

export * from "./public.js";
