// What a person's program does with the published SDK. `node scenes.mjs SCENE GIVEN` plays one scene and prints what
// came of it as one line of JSON. Nothing is judged here: the tests in Python do that.

import { createRequire } from "node:module";
import { writeFileSync } from "node:fs";

const [, , scene, words] = process.argv;
const given = JSON.parse(words);
const require = createRequire(`${given.sdk}/`);
const sdk = require("@moonshot-ai/kimi-agent-sdk");
const { z } = require("zod");

const open = (more = {}) =>
  sdk.createSession({
    workDir: given.work,
    executable: given.executable,
    sessionId: given.session,
    shareDir: given.share,
    ...more,
  });

/** The events of a turn, each first given to `on[type]`; and how it ended. */
async function hear(turn, on = {}) {
  const events = [];
  try {
    for await (const event of turn) {
      events.push(event);
      await on[event.type]?.(event, turn, events);
    }
    return { events, result: await turn.result };
  } catch (error) {
    return { events, error: told(error) };
  }
}

const told = (error) => ({ code: error.code, category: error.category, message: error.message });

/** So that a thing is done at the first event of its kind only. */
const once = (act) => {
  let done = false;
  return async (...all) => {
    if (!done) {
      done = true;
      await act(...all);
    }
  };
};

const approving = (answer) => ({ ApprovalRequest: (event, turn) => turn.approve(event.payload.id, answer) });

const scenes = {
  async talk() {
    const session = open({ yoloMode: given.yolo ?? false, model: given.model });
    const turns = [];
    for (const said of given.say) turns.push(await hear(session.prompt(said), approving(given.answer ?? "approve")));
    const { sessionId, slashCommands, state } = session;
    await session.close();
    return { turns, sessionId, slashCommands, state, closed: session.state };
  },

  async once() {
    const { result, events } = await sdk.prompt(given.say[0], {
      workDir: given.work,
      executable: given.executable,
      shareDir: given.share,
    });
    return { turns: [{ result, events }] };
  },

  async queue() {
    // A second prompt while the first runs: the SDK keeps it back and sends it when the first is answered.
    const session = open();
    const turn = session.prompt("one");
    session.prompt("two");
    const heard = await hear(turn);
    await session.close();
    return { turns: [heard] };
  },

  async tool() {
    const asked = [];
    const weigh = sdk.createExternalTool({
      name: "weigh",
      description: "Weighs a thing.",
      parameters: z.object({ thing: z.string() }),
      handler: async (params) => {
        asked.push(params);
        if (params.thing === "air") throw new Error("too light");
        return { output: "3 kg", message: "weighed" };
      },
    });
    const session = open({ externalTools: [weigh] });
    const turn = await hear(session.prompt("weigh it"));
    await session.close();
    return { turns: [turn], asked, schema: weigh.parameters };
  },

  async question() {
    const session = open();
    const answer = (event, turn) => turn.respondQuestion(event.payload.id, event.payload.id, { "Which?": "blue" });
    const turn = await hear(session.prompt("ask me"), { QuestionRequest: answer });
    await session.close();
    return { turns: [turn] };
  },

  async steer() {
    const session = open();
    const push = once(async (event, turn) => {
      await turn.steer("look left");
      writeFileSync(given.release, "");
    });
    const turn = await hear(session.prompt("go"), { ContentPart: push });
    await session.close();
    return { turns: [turn] };
  },

  async plan() {
    const session = open();
    const first = await hear(session.prompt("go"));
    const on = await session.setPlanMode(true);
    const second = await hear(session.prompt("plan it"), approving("approve"));
    const kept = session.planMode;
    const off = await session.setPlanMode(false);
    await session.close();
    return { turns: [first, second], on, kept, off };
  },

  async interrupt() {
    const session = open();
    const stopped = await hear(session.prompt("go"), { ContentPart: once((event, turn) => turn.interrupt()) });
    writeFileSync(given.release, "");
    const after = await hear(session.prompt("again"));
    await session.close();
    return { turns: [stopped, after] };
  },

  async leave() {
    // The program closes in the middle of a turn: what it waits for has to come to an end.
    const session = open();
    const began = Date.now();
    const turn = await hear(session.prompt("go"), { ContentPart: once(() => void session.close()) });
    return { turns: [turn], took: Date.now() - began };
  },

  async restart() {
    // Another setting between two turns: the SDK starts the executable anew on the same session.
    const session = open();
    const first = await hear(session.prompt("one"), approving("approve_for_session"));
    session.thinking = true;
    const second = await hear(session.prompt("two"), approving("reject"));
    await session.close();
    return { turns: [first, second] };
  },

  async files() {
    // The SDK reads and writes the session's files by itself, beside the server.
    const session = open();
    const turns = [];
    for (const said of given.say) turns.push(await hear(session.prompt(said), approving("approve")));
    const inTurns = await sdk.parseSessionEvents(given.work, session.sessionId);
    await session.close();
    const listed = await sdk.listSessions(given.work);
    const everywhere = await sdk.listSessionsForWorkspace(given.work);
    const events = await sdk.parseSessionEvents(given.work, session.sessionId);
    const fork = await sdk.forkSession({ workDir: given.work, sourceSessionId: session.sessionId, turnIndex: 0 });
    const forked = open({ sessionId: fork.sessionId });
    turns.push(await hear(forked.prompt("in the fork"), approving("approve")));
    await forked.close();
    const after = await sdk.listSessions(given.work);
    const inFork = await sdk.parseSessionEvents(given.work, fork.sessionId);
    const deleted = await sdk.deleteSession(given.work, session.sessionId);
    return { turns, sessionId: session.sessionId, fork, listed, everywhere, events, inTurns, inFork, after, deleted };
  },

  async fork() {
    return await sdk.forkSession({ workDir: given.work, sourceSessionId: given.session, turnIndex: given.turn });
  },

  async hooks() {
    const asked = [];
    const client = new sdk.ProtocolClient();
    const block = async (request) => {
      asked.push(request);
      return { action: "block", reason: "not here" };
    };
    const greeting = await client.start({
      workDir: given.work,
      executablePath: given.executable,
      environmentVariables: { KIMI_SHARE_DIR: given.share },
      sessionId: given.session,
      hooks: [{ id: "h", event: "PreToolUse", matcher: given.matcher, handler: block }],
    });
    const { events, result } = client.sendPrompt("go");
    const turn = await hear(Object.assign(events, { result }));
    const again = client.sendReplay();
    const replayed = await hear(Object.assign(again.events, { result: again.result }));
    await client.stop();
    return { greeting, turns: [turn], replayed, asked };
  },
};

console.log(JSON.stringify(await scenes[scene]()));
