// The part of latency.py that is done with the npm packages. Prints JSON: what → milliseconds.
import { Sandbox } from 'e2b'
import { Sandbox as CodeSandbox } from '@e2b/code-interpreter'

const [runs, creates] = process.argv.slice(2).map(Number)

async function median(call, rounds, pause = 0) {
  await call()
  const times = []
  for (let i = 0; i < rounds; i++) {
    const begin = performance.now()
    await call()
    times.push(performance.now() - begin)
    if (pause) await new Promise((done) => setTimeout(done, pause))
  }
  return times.sort((a, b) => a - b)[Math.floor(rounds / 2)]
}

const made = []
const figures = {}
figures['npm Sandbox.create()'] = await median(async () => made.push(await Sandbox.create()), creates, 200)
const sandbox = made.pop()
await Promise.all(made.map((one) => one.kill()))
figures["npm commands.run('true')"] = await median(() => sandbox.commands.run('true'), runs)
const code = await CodeSandbox.create()
figures["npm runCode('1+1')"] = await median(() => code.runCode('1+1'), runs)
await Promise.all([sandbox.kill(), code.kill()])
console.log(JSON.stringify(figures))
process.exit(0)
