import "./imported.js";

export * from "./public.js";
