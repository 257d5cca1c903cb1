import { GEMINI } from "./scenarios/callers/gemini.ts";
import { playAll } from "./scenarios/suite.ts";

playAll({ entrance: "http", caller: GEMINI });
