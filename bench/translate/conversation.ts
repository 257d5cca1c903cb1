const CITIES = ["Paris", "Nairobi", "Osaka", "Lima", "Tromsø"];

/** Three tools as an OpenAI client describes them. */
export const TOOLS = [
  tool("get_weather", "Current weather for a city, or its forecast for up to ten days", {
    city: { type: "string", description: "The city, in English" },
    days: { type: "integer", minimum: 1, maximum: 10 },
    unit: { type: "string", enum: ["celsius", "fahrenheit"] },
  }),
  tool("find_trains", "Trains between two stations on one day", {
    from: { type: "string" },
    to: { type: "string" },
    date: { type: "string", format: "date" },
    classes: { type: "array", items: { type: "string", enum: ["first", "second"] } },
  }),
  tool("book", "Books an offer that was found", { offer: { type: "string" }, passengers: { type: "integer" } }),
];

function tool(name: string, description: string, properties: object): object {
  const parameters = { type: "object", properties, required: Object.keys(properties).slice(0, 1) };
  return { type: "function", function: { name, description, parameters } };
}

/** A question, a call, its result and an answer, about one city. */
export function visit(index: number): object[] {
  const city = CITIES[index % CITIES.length]!;
  const id = `call_${String(index).padStart(24, "0")}`;
  const call = { name: "get_weather", arguments: JSON.stringify({ city, days: (index % 9) + 1, unit: "celsius" }) };
  const days = [index % 30, (index + 3) % 30, (index + 7) % 30];
  return [
    { role: "user", content: `And what will the weather be like in ${city} on day ${index} of our journey? ${PLAN}` },
    { role: "assistant", content: null, tool_calls: [{ id, type: "function", function: call }] },
    {
      role: "tool",
      tool_call_id: id,
      content: JSON.stringify({ city, celsius: days, source: "station", wind: "light" }),
    },
    {
      role: "assistant",
      content: `In ${city} it will be between ${Math.min(...days)} and ${Math.max(...days)} degrees.`,
    },
  ];
}

const PLAN = "We would rather walk than take the bus, so please say whether an umbrella is needed; we pack light.";

/**
 * A request to `/v1/chat/completions` as a client sends it: four messages for each visit, one of them a call, four
 * around them, and three tools.
 */
function conversation(visitCount: number): string {
  const opening = [
    { role: "system", content: "You help to plan a journey. Be brief, and say where a figure comes from." },
    { role: "user", content: "We shall travel for seven weeks. Are you ready to help?" },
    { role: "assistant", content: "With pleasure. Tell me where you will be, day by day." },
  ];
  const visits = Array.from({ length: visitCount }, (_, index) => visit(index)).flat();
  const messages = [...opening, ...visits, { role: "user", content: "Now book it, please." }];
  return JSON.stringify({
    model: "any",
    messages,
    tools: TOOLS,
    tool_choice: "auto",
    max_tokens: 1000,
    temperature: 0.5,
  });
}

/** 200 messages. */
export const longConversation = (): string => conversation(49);

/** 12 messages. */
export const shortConversation = (): string => conversation(2);
