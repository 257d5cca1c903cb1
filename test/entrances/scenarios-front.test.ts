import { CHAT } from "./scenarios/callers/chat.ts";
import { playAll } from "./scenarios/suite.ts";

playAll({ entrance: "http", caller: CHAT, through: "front" });
