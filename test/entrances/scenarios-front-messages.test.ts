import { MESSAGES } from "./scenarios/callers/messages.ts";
import { playAll } from "./scenarios/suite.ts";

playAll({ entrance: "http", caller: MESSAGES, through: "front" });
