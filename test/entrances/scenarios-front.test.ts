import { playAll } from "./scenarios/suite.ts";

playAll({ entrance: "http", through: "front" });
