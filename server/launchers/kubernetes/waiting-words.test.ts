import { expect, it } from "vitest";
import { logger } from "#server/log.ts";
import { WaitingWords } from "./waiting-words.ts";

/** What is told, and `found`: gives a sentence its words, the oldest search for it first. */
function listen() {
  const told: string[] = [];
  const searches: { sentence: string; resolve: (found: string) => void }[] = [];
  const words = new WaitingWords(
    async (_, sentence) => {
      const { promise, resolve } = Promise.withResolvers<string>();
      searches.push({ sentence, resolve });
      return await promise;
    },
    (sentence) => told.push(sentence),
    logger("test"),
  );
  const found = async (of: string) => {
    const index = searches.findIndex(({ sentence }) => sentence === of);
    searches.splice(index, 1)[0]?.resolve(`${of}!`);
    await new Promise(setImmediate);
  };
  const waitsFor = (...sentences: (string | undefined)[]) => {
    for (const sentence of sentences) words.waitsFor({}, sentence);
  };
  return { told, searches, words, found, waitsFor };
}

it("tells each sentence once, also when a state without one comes between", async () => {
  const { told, searches, found, waitsFor } = listen();
  waitsFor(undefined, "cpu", "cpu", undefined, "cpu");
  await found("cpu");
  waitsFor(undefined, "cpu", "volume");
  await found("volume");
  expect([told, searches]).toEqual([["cpu!", "volume!"], []]);
});

it("tells nothing that the pod waits for no more", async () => {
  const { told, found, waitsFor } = listen();
  waitsFor("cpu", "volume");
  await found("volume");
  await found("cpu");
  waitsFor("image", undefined);
  await found("image");
  expect(told).toEqual(["volume!"]);
  waitsFor("image");
  await found("image");
  expect(told).toEqual(["volume!", "image!"]);
});

it("tells a sentence once that comes back while its words are still sought", async () => {
  const { told, found, waitsFor } = listen();
  waitsFor("cpu", "volume", "cpu");
  await found("cpu");
  await found("cpu");
  expect(told).toEqual(["cpu!"]);
});

it("tells nothing after the wait", async () => {
  const { told, words, found, waitsFor } = listen();
  waitsFor("cpu");
  words.stop();
  await found("cpu");
  expect(told).toEqual([]);
});

it("tells the sentence itself where the cluster does not tell more", async () => {
  const told: string[] = [];
  const words = new WaitingWords(
    () => Promise.reject(new Error("refused")),
    (sentence) => told.push(sentence),
    logger("test"),
  );
  words.waitsFor({}, "cpu");
  expect(await words.of({}, "volume")).toBe("volume");
  expect(told).toEqual(["cpu"]);
});
