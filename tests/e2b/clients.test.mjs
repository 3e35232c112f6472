// What the npm packages e2b and @e2b/code-interpreter do with the Atoll that the variables name.
import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'

// The packages of another version are installed under other names.
const code = await import(process.env.ATOLL_E2B_CODE ?? '@e2b/code-interpreter')
const {
  AuthenticationError,
  CommandExitError,
  FileNotFoundError,
  FileType,
  FilesystemEventType,
  InvalidArgumentError,
  NotFoundError,
  Sandbox,
  SandboxNotFoundError,
  Secret,
  Template,
  TimeoutError,
  Volume,
} = await import(process.env.ATOLL_E2B ?? 'e2b')

const sleep = (ms) => new Promise((done) => setTimeout(done, ms))

async function until(what, condition, ms = 10000) {
  for (const end = Date.now() + ms; Date.now() < end; await sleep(50)) if (await condition()) return
  assert.fail(`waited in vain for ${what}`)
}

describe('sandboxes', () => {
  test('live and end', async () => {
    const sandbox = await Sandbox.create({ metadata: { who: 'me' }, envs: { GREETING: 'hello' } })
    assert.equal(await sandbox.isRunning(), true)
    const info = await sandbox.getInfo()
    assert.equal(info.sandboxId, sandbox.sandboxId)
    assert.deepEqual(info.metadata, { who: 'me' })
    assert.equal((await sandbox.commands.run('echo $GREETING')).stdout, 'hello\n')
    const again = await Sandbox.connect(sandbox.sandboxId)
    assert.equal((await again.commands.run('echo 1')).stdout, '1\n')
    await sandbox.setTimeout(600_000)
    const left = (await sandbox.getInfo()).endAt.getTime() - Date.now()
    assert.ok(Math.abs(left - 600_000) < 20_000, `${left}`)
    assert.match(sandbox.getHost(3000), new RegExp(`^3000-${sandbox.sandboxId}\\.localhost:\\d+$`))
    await sandbox.updateNetwork({ allowOut: ['example.com'] })
    const [used] = await sandbox.getMetrics()
    assert.ok(used.memUsed > 0 && used.memUsed < used.memTotal, JSON.stringify(used))
    assert.equal(await sandbox.kill(), true)
    assert.equal(await Sandbox.kill(sandbox.sandboxId), false)
    assert.equal(await sandbox.isRunning(), false)
    await assert.rejects(sandbox.getInfo(), SandboxNotFoundError)
    await assert.rejects(Sandbox.connect(sandbox.sandboxId), SandboxNotFoundError)
    await assert.rejects(sandbox.commands.run('true'), SandboxNotFoundError)
  })

  test('are listed by metadata and page', async () => {
    const metadata = { 'a k': 'b c&d', mark: `${Date.now()}` }
    const made = []
    for (let i = 0; i < 3; i++) made.push(await Sandbox.create({ metadata }))
    const pages = Sandbox.list({ query: { metadata }, limit: 2 })
    const first = await pages.nextItems()
    assert.equal(pages.hasNext, true)
    const second = await pages.nextItems()
    assert.equal(pages.hasNext, false)
    const ids = [...first, ...second].map((one) => one.sandboxId)
    assert.deepEqual(ids, made.map((one) => one.sandboxId).reverse())
    const paused = Sandbox.list({ query: { metadata, state: ['paused'] } })
    assert.deepEqual(await paused.nextItems(), [])
    await Promise.all(made.map((one) => one.kill()))
  })

  test('are refused in words', async () => {
    await assert.rejects(Sandbox.create('no-such-template'), /no-such-template/)
    await assert.rejects(Sandbox.create({ apiKey: `e2b_${'0'.repeat(40)}` }), AuthenticationError)
    const sandbox = await Sandbox.create()
    await sandbox.kill()
    await assert.rejects(sandbox.setTimeout(1000), SandboxNotFoundError)
    assert.equal(await Template.exists('base'), true)
    assert.equal(await Template.exists('no-such-template'), false)
  })

  test('have secrets by name', { skip: !Secret?.create && 'this version has none' }, async () => {
    const made = await Secret.create('by-npm', 'sk-value', { metadata: { team: 'blue' } })
    try {
      assert.deepEqual([made.name, made.version, made.metadata], ['by-npm', 1, { team: 'blue' }])
      assert.equal((await Secret.update('by-npm', 'sk-other')).version, 2)
      assert.equal((await Secret.getInfo(made.secretId)).name, 'by-npm')
      assert.deepEqual((await Secret.list().nextItems()).map((one) => one.name), ['by-npm'])
      assert.equal(await Secret.exists('by-npm'), true)
    } finally {
      assert.equal(await Secret.destroy('by-npm'), true)
    }
    assert.equal(await Secret.destroy('by-npm'), false)
  })

  test('start from templates that clients build', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'atoll-e2b-'))
    await writeFile(join(directory, 'a.txt'), 'copied')
    const template = Template({ fileContextPath: directory })
      .fromBaseImage()
      .setEnvs({ WORD: 'set' })
      .copy('a.txt', '/srv/', { mode: 0o600 })
      .copyItems([{ src: 'a.txt', dest: '/opt/b.txt', user: 'root' }])
      .setUser('root')
      .setWorkdir('/srv')
      .runCmd('echo "$WORD" $(id -un) $(cat a.txt) >said; echo done')
    const logs = []
    const built = await Template.build(template, 'by-npm', {
      onBuildLogs: (entry) => logs.push(entry.message),
    })
    assert(logs.includes('done'), logs.join('\n'))
    assert.equal(await Template.exists('by-npm'), true)
    const sandbox = await Sandbox.create('by-npm')
    const shown = await sandbox.commands.run('id -un; cat said; stat -c %a:%U a.txt /opt/b.txt')
    assert.equal(shown.stdout, 'root\nset root copied\n600:user\n644:root\n')
    await sandbox.kill()
    const failing = Template().fromTemplate('by-npm').runCmd('exit 7')
    await assert.rejects(Template.build(failing, 'by-npm-too'), /exit code 7/)
    const starting = Template().skipCache().fromTemplate('by-npm')
    const ready = 'test -s /tmp/up'
    for (const one of [starting.setStartCmd('echo up >/tmp/up; sleep 100', ready),
                       starting.setReadyCmd('echo up >/tmp/up')]) {
      await Template.build(one, 'by-npm-too')
      const started = await Sandbox.create('by-npm-too')
      assert.equal((await started.commands.run('cat /tmp/up')).stdout, 'up\n')
      await started.kill()
    }
    const tagged = await Template.assignTags('by-npm', ['stable'])
    assert.deepEqual(tagged.tags, ['stable'])
    const tags = (await Template.getTags('by-npm')).map((one) => one.tag)
    assert.deepEqual(tags.sort(), ['default', 'stable'])
    await Template.removeTags('by-npm', 'stable')
    assert.equal(await Template.exists('by-npm:stable'), false)
    const begun = await Template.buildInBackground(failing, 'by-npm-too')
    await until('the end', async () => (await Template.getBuildStatus(begun)).status === 'error')
    assert.equal((await Template.getBuildStatus(begun)).reason.step, '1')
    assert.ok(built.templateId)
    await rm(directory, { recursive: true })
  })

  test('sleep, wake, are kept and forked', async () => {
    const sandbox = await Sandbox.create()
    await sandbox.files.write('/tmp/note', 'kept')
    const running = await sandbox.commands.run('sleep 1000', { background: true })
    await sandbox.pause()
    assert.equal(await sandbox.isRunning(), false)
    const again = await Sandbox.connect(sandbox.sandboxId)
    assert.equal(await again.files.read('/tmp/note'), 'kept')
    assert((await again.commands.list()).some((one) => one.pid === running.pid))
    const snapshot = await again.createSnapshot()
    const made = await Sandbox.create(snapshot.snapshotId)
    assert.equal(await made.files.read('/tmp/note'), 'kept')
    const listed = await Sandbox.listSnapshots({ sandboxId: again.sandboxId }).nextItems()
    assert.deepEqual(listed.map((one) => one.snapshotId), [snapshot.snapshotId])
    // Older packages cannot.
    const forks = again.fork ? await again.fork({ count: 2 }) : []
    for (const fork of forks) {
      assert.equal(await fork.files.read('/tmp/note'), 'kept')
      await fork.kill()
    }
    await Promise.all([again.kill(), made.kill()])
    assert.equal(await Sandbox.deleteSnapshot(snapshot.snapshotId), true)
  })

  test('share files with volumes', async () => {
    const volume = await Volume.create('by-npm')
    try {
      await volume.writeFile('/dir/seen', 'before', { mode: 0o640 })
      assert.equal((await volume.getInfo('/dir/seen')).mode, 0o640)
      const sandbox = await Sandbox.create({ volumeMounts: { '/mnt/data': volume } })
      try {
        assert.equal(await sandbox.files.read('/mnt/data/dir/seen'), 'before')
        await sandbox.files.write('/mnt/data/from', 'inside')
        assert.equal(await volume.readFile('from'), 'inside')
        assert.deepEqual((await volume.list('/')).map((one) => one.path).sort(), ['/dir', '/from'])
      } finally {
        await sandbox.kill()
      }
      const again = await Volume.connect(volume.volumeId)
      await again.makeDir('/x/y', { force: true })
      assert.equal((await again.updateMetadata('/x', { mode: 0o700 })).mode, 0o700)
      await again.remove('/dir')
      assert.equal(await again.exists('/dir'), false)
      assert.equal((await Volume.getInfo(volume.volumeId)).name, 'by-npm')
      assert.equal((await Volume.list()).length, 1)
    } finally {
      assert.equal(await Volume.destroy(volume.volumeId), true)
    }
    assert.equal(await Volume.destroy(volume.volumeId), false)
  })

  test('that are killed cut off what runs in them', async () => {
    const sandbox = await Sandbox.create()
    const running = assert.rejects(sandbox.commands.run('sleep 30'), TimeoutError)
    let watched
    const watching = new Promise((done) => {
      watched = sandbox.files.watchDir('/tmp', () => {}, { onExit: done })
    })
    await watched
    while ((await sandbox.commands.list()).length === 0) await sleep(100)
    await sandbox.kill()
    await running
    await watching
  })
})

describe('inside one sandbox', () => {
  let sandbox
  before(async () => {
    sandbox = await Sandbox.create({ timeoutMs: 600_000 })
  })
  after(() => sandbox.kill())

  test('commands give output, exit codes and errors', async () => {
    const done = await sandbox.commands.run('echo out; echo err >&2')
    assert.deepEqual([done.stdout, done.stderr, done.exitCode], ['out\n', 'err\n', 0])
    await assert.rejects(sandbox.commands.run('echo before; exit 3'), (error) => {
      assert.ok(error instanceof CommandExitError)
      assert.deepEqual([error.exitCode, error.stdout], [3, 'before\n'])
      return true
    })
    assert.equal((await sandbox.commands.run('whoami; pwd')).stdout, 'user\n/home/user\n')
    assert.equal((await sandbox.commands.run('whoami', { user: 'root' })).stdout, 'root\n')
    assert.equal((await sandbox.commands.run('pwd', { cwd: '/tmp' })).stdout, '/tmp\n')
    const missing = sandbox.commands.run('true', { cwd: '/no/such/place' })
    await assert.rejects(missing, InvalidArgumentError)
    const stranger = sandbox.commands.run('true', { user: 'nobody-here' })
    await assert.rejects(stranger, AuthenticationError)
  })

  test('commands run in the background', async () => {
    const handle = await sandbox.commands.run('cat; sleep 60', { background: true, stdin: true })
    const listed = (await sandbox.commands.list()).find((one) => one.pid === handle.pid)
    assert.equal(listed.cmd, '/bin/bash')
    let seen = ''
    const joined = await sandbox.commands.connect(handle.pid, { onStdout: (text) => (seen += text) })
    await sandbox.commands.sendStdin(handle.pid, 'typed')
    await until('the echo', () => seen === 'typed')
    await sandbox.commands.closeStdin(handle.pid)
    assert.equal(await sandbox.commands.kill(handle.pid), true)
    await assert.rejects(handle.wait(), CommandExitError)
    await assert.rejects(joined.wait(), CommandExitError)
    assert.equal(await sandbox.commands.kill(handle.pid), false)
    await assert.rejects(sandbox.commands.connect(999999), NotFoundError)
  })

  test('commands end when their time is up', async () => {
    await assert.rejects(sandbox.commands.run('sleep 7777', { timeoutMs: 1000 }), TimeoutError)
    const find = "cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -c 'sleep 777[7]' || true"
    await until('the kill', async () => (await sandbox.commands.run(find)).stdout === '0\n')
  })

  test('terminals', async () => {
    let text = ''
    const handle = await sandbox.pty.create({
      cols: 80,
      rows: 24,
      onData: (data) => (text += Buffer.from(data).toString()),
    })
    await sandbox.pty.resize(handle.pid, { cols: 100, rows: 30 })
    await sandbox.pty.sendInput(handle.pid, Buffer.from('echo A$((1+1))B; stty size; exit\n'))
    await handle.wait()
    assert.match(text, /A2B/)
    assert.match(text, /30 100/)
  })

  test('files are written, read, listed, moved and removed', async () => {
    const { files } = sandbox
    const made = await files.write('notes/a ü.txt', 'häß')
    assert.equal(made.path, '/home/user/notes/a ü.txt')
    assert.equal(await files.read('notes/a ü.txt'), 'häß')
    const bytes = new Uint8Array(3_000_000).map((_, i) => (i * 7919) >> 3)
    await files.write('/tmp/big', new Blob([bytes]))
    assert.deepEqual(await files.read('/tmp/big', { format: 'bytes' }), bytes)
    await (files.writeFiles ?? files.write).call(files, [
      { path: '/tmp/many/one', data: '1' },
      { path: '/tmp/many/two', data: '2' },
    ])
    const names = (await files.list('/tmp/many')).map((entry) => [entry.name, entry.type])
    assert.deepEqual(names, [['one', FileType.FILE], ['two', FileType.FILE]])
    const info = await files.getInfo('/tmp/many/one')
    assert.deepEqual([info.size, info.owner, info.permissions], [1, 'user', '-rw-r--r--'])
    assert.equal(await files.makeDir('/tmp/many/deep/er'), true)
    assert.equal(await files.makeDir('/tmp/many/deep/er'), false)
    await files.rename('/tmp/many/one', '/tmp/many/else/where')
    assert.equal(await files.exists('/tmp/many/one'), false)
    assert.equal(await files.read('/tmp/many/else/where'), '1')
    await files.remove('/tmp/many')
    await assert.rejects(files.read('/tmp/many/two'), FileNotFoundError)
    await assert.rejects(files.list('/tmp/many'), FileNotFoundError)
  })

  test('files have signed links', async () => {
    await sandbox.files.write('/tmp/linked', 'by link')
    const link = await sandbox.downloadUrl('/tmp/linked', { useSignatureExpiration: 60 })
    assert.equal(await (await fetch(link)).text(), 'by link')
    const form = new FormData()
    form.append('file', new Blob(['up']), 'x')
    const up = await fetch(await sandbox.uploadUrl('/tmp/up'), { method: 'POST', body: form })
    assert.equal(up.status, 200)
    assert.equal(await sandbox.files.read('/tmp/up'), 'up')
    assert.equal((await fetch(link.replace('linked', 'up'))).status, 401)
  })

  test('directories are watched', async () => {
    const events = []
    await sandbox.files.makeDir('/tmp/watched')
    await sandbox.files.write('/tmp/watched/f', '1')
    const handle = await sandbox.files.watchDir('/tmp/watched', (event) => events.push(event), {
      recursive: true,
    })
    await sandbox.files.write('/tmp/watched/f', '2')
    await sandbox.commands.run('mkdir /tmp/watched/d && echo 1 >/tmp/watched/d/g')
    const saw = (name, type) => events.some((one) => one.name === name && one.type === type)
    await until('the events', () => saw('f', FilesystemEventType.WRITE) &&
      saw('d', FilesystemEventType.CREATE) && saw('d/g', FilesystemEventType.CREATE))
    await handle.stop()
    const missing = sandbox.files.watchDir('/tmp/no-such-directory', () => {})
    await assert.rejects(missing, NotFoundError)
  })

  // Only the real image of `base` has it, and only newer packages have methods for it.
  const hasBase = process.env.ATOLL_E2B_BASE
  test('git', { skip: !hasBase && 'the image of base is not built' }, async (context) => {
    const { files, git } = sandbox
    if (!git) return context.skip('not in this version')
    const [origin, work] = ['/home/user/origin', '/home/user/work']
    await git.init(origin, { bare: true, initialBranch: 'main' })
    await git.init(work, { initialBranch: 'main' })
    await git.configureUser('Me', 'me@example.com')
    await git.setConfig('core.editor', 'true')
    assert.equal(await git.getConfig('core.editor'), 'true')
    await git.remoteAdd(work, 'origin', origin)
    assert.equal(await git.remoteGet(work, 'origin'), origin)
    await files.write(`${work}/a`, '1')
    assert.deepEqual((await git.status(work)).fileStatus.map((one) => one.name), ['a'])
    await git.add(work)
    await git.commit(work, 'first')
    await git.push(work, { remote: 'origin', branch: 'main' })
    await git.clone(origin, { path: '/home/user/copy' })
    assert.equal(await files.read('/home/user/copy/a'), '1')
    await git.createBranch(work, 'other')
    await git.checkoutBranch(work, 'main')
    assert.deepEqual((await git.branches(work)).branches.sort(), ['main', 'other'])
    await git.deleteBranch(work, 'other', { force: true })
    await files.write(`${work}/a`, '2')
    await git.restore(work, { paths: ['a'], worktree: true })
    assert.equal(await files.read(`${work}/a`), '1')
    await files.write(`${work}/b`, '3')
    await git.add(work)
    await git.reset(work, { mode: 'hard' })
    assert.equal((await git.status(work)).isClean, true)
    await git.pull(work, { remote: 'origin', branch: 'main' })
    const login = { username: 'me', password: 'secret', host: 'git.example.com' }
    await git.dangerouslyAuthenticate(login)
  })

  test('two hundred streams at once', async () => {
    const runs = Array.from({ length: 200 }, (_, i) => sandbox.commands.run(`echo ${i}; sleep 1`))
    const done = await Promise.all(runs)
    assert.deepEqual(done.map((one) => one.stdout), done.map((_, i) => `${i}\n`))
  })
})

describe('the code interpreter', () => {
  let sandbox
  before(async () => {
    sandbox = await code.Sandbox.create({ timeoutMs: 600_000 })
  })
  after(() => sandbox.kill())

  test('keeps state and gives results', async () => {
    await sandbox.runCode('x = 41')
    const execution = await sandbox.runCode("print('prinäted'); x + 1")
    assert.equal(execution.text, '42')
    assert.deepEqual(execution.logs.stdout, ['prinäted\n'])
    const failed = await sandbox.runCode('undefined_name')
    assert.equal(failed.error.name, 'NameError')
  })

  test('has contexts', async () => {
    const context = await sandbox.createCodeContext({ cwd: '/tmp' })
    assert.deepEqual([context.language, context.cwd], ['python', '/tmp'])
    const where = await sandbox.runCode('import os; os.getcwd()', { context })
    assert.equal(where.text, '/tmp')
    const listed = await sandbox.listCodeContexts()
    assert.ok(listed.some((one) => one.id === context.id))
    await sandbox.restartCodeContext(context)
    await sandbox.removeCodeContext(context)
    await assert.rejects(sandbox.runCode('1', { context }), code.SandboxError)
  })

  test('interrupts a run whose client has gone', async () => {
    const endless = sandbox.runCode('while True: pass', { timeoutMs: 1000 })
    await assert.rejects(endless, code.TimeoutError)
    assert.equal((await sandbox.runCode('1 + 1')).text, '2')
  })
})
