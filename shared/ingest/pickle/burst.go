package pickle

import "encoding/binary"

// burst does the opcodes that make up nearly all of a file, as long as the
// window holds any of them whole, with the window and the stack in locals: calls
// cost more than the work. It returns the first opcode that is not its own, its
// arguments unread; ok is false when the window must move on.
//
// What it does not do is opcodes in a state that only a broken file leads to:
// it leaves them to the careful versions.
func (m *Machine) burst() (op byte, ok bool, err error) {
	buf, pos, stack := m.src.buf, m.src.pos, m.stack
	made, begun := 0, -1
	for len(buf)-pos >= ahead {
		arg := buf[pos+1 : pos+1+16]
		op = buf[pos]
		switch op {
		case opBinGet:
			if int(arg[0]) >= len(m.memo) || m.memo[arg[0]] == hole {
				goto out
			}
			stack = append(stack, m.memo[arg[0]])
			pos += 2
		case opLongBinGet:
			n := binary.LittleEndian.Uint32(arg)
			if uint64(n) >= uint64(len(m.memo)) || m.memo[n] == hole {
				goto out
			}
			stack = append(stack, m.memo[n])
			pos += 5
		case opBinInt1:
			stack = append(stack, pack(Int, uint64(arg[0])))
			pos += 2
		case opBinInt2:
			stack = append(stack, pack(Int, uint64(binary.LittleEndian.Uint16(arg))))
			pos += 3
		case opBinInt:
			stack = append(stack, pack(Int, uint64(int64(int32(binary.LittleEndian.Uint32(arg))))))
			pos += 5
		case opLong1:
			n := uint(arg[0])
			shift := (64 - 8*n) & 63
			x := int64(binary.LittleEndian.Uint64(arg[1:])<<shift) >> shift
			if n-1 >= 8 || x < minInline || x > maxInline {
				goto out
			}
			stack = append(stack, pack(Int, uint64(x)))
			pos += 2 + int(n)
		case opMemoize:
			if len(stack) <= m.floor() || len(m.far) != 0 {
				goto out
			}
			m.memo = append(room(m.memo), stack[len(stack)-1])
			made++
			pos++
		case opLongBinPut, opBinPut:
			n, width := uint32(arg[0]), 2
			if op == opLongBinPut {
				n, width = binary.LittleEndian.Uint32(arg), 5
			}
			if uint64(n) != uint64(len(m.memo)) || len(stack) <= m.floor() {
				goto out
			}
			m.memo = append(room(m.memo), stack[len(stack)-1])
			made++
			pos += width
		case opMark:
			m.marks = append(m.marks, len(stack))
			made++
			pos++
		case opEmptyDict:
			if m.pattern.n > 0 {
				if dict, size := m.repeat(buf[pos:]); size > 0 {
					stack = append(stack, dict)
					pos += size
					continue
				}
			}
			begun = pos
			stack = append(stack, pack(object, uint64(len(m.objects))))
			m.objects = append(room(m.objects), pack(Dict, 0))
			made++
			pos++
		case opEmptyList:
			stack = append(stack, pack(object, uint64(len(m.objects))))
			m.objects = append(room(m.objects), pack(List, 0))
			made++
			pos++
		case opNone:
			stack = append(stack, pack(None, 0))
			pos++
		case opNewFalse, opNewTrue:
			stack = append(stack, pack(Bool, uint64(opNewFalse-op)))
			pos++
		case opFrame:
			pos += 9
		case opSetItems:
			m.src.pos, m.stack = pos+1, stack
			if err := m.setItems(op); err != nil {
				return 0, false, err
			}
			stack = m.stack
			pos++
			if begun >= 0 && pos-begun < ahead {
				m.learn(buf[begun:], pos-begun)
			}
			begun = -1
		default:
			goto out
		}
	}
	m.src.pos, m.stack = pos, stack
	m.charge(8 * made)
	return 0, false, nil
out:
	m.src.pos, m.stack = pos+1, stack
	m.charge(8 * made)
	return op, true, nil
}
